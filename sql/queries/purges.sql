-- Today's rules applied to what is stored: every column that holds text of a source.

-- name: document_ids
select id from documents where project_id = %(project)s order by id

-- name: lock_passages
-- Before anything is read: a worker that stores vectors passes locked passages over.
select k.id from chunks k
where k.document_id = any(%(documents)s)
order by k.id
for update of k

-- name: documents
select id, kind, name, source, title, reason, directory, branch, secrets
from documents where id = any(%(documents)s)
order by id

-- name: passages
select id, document_id, heading_path, titled, start_line, end_line, start_char, end_char, event_id,
       last_event_id, speaker, preceding, content
from chunks where document_id = any(%(documents)s)
order by document_id, ordinal

-- name: same_name
select id from documents where project_id = %(project)s and kind = %(kind)s and name = %(name)s

-- name: change_document
-- Its fingerprint goes, so that the next run reads it from the source again.
update documents
set name = %(name)s, source = %(source)s, title = %(title)s, reason = %(reason)s,
    directory = %(directory)s, branch = %(branch)s, secrets = %(secrets)s, chunker = 'purged'
where id = %(id)s

-- name: change_passage
update chunks
set heading_path = %(heading_path)s, start_line = %(start_line)s, end_line = %(end_line)s,
    start_char = %(start_char)s, end_char = %(end_char)s, event_id = %(event_id)s,
    last_event_id = %(last_event_id)s, speaker = %(speaker)s, preceding = %(preceding)s,
    content = %(content)s, content_hash = %(content_hash)s
where id = %(id)s

-- name: drop_vectors
-- Of the text that was there before, in every space.
delete from embeddings e using chunks k
where e.chunk_id = k.id and k.document_id = any(%(documents)s) and e.content_hash <> k.content_hash

-- name: unsettle
-- The next survey takes the project for one whose rules changed.
update coverage set fingerprint = null where project_id = %(project)s

-- name: account
select scope, attempt_error, embedding_error from coverage where project_id = %(project)s
order by scope
for update

-- name: change_account
update coverage
set attempt_error = %(attempt_error)s, embedding_error = %(embedding_error)s
where project_id = %(project)s and scope = %(scope)s

-- name: change_branch
update projects set branch = %(branch)s where id = %(project)s

-- name: branches
select distinct branch from project_commits where project_id = %(project)s order by branch

-- name: change_commits
update project_commits set branch = %(branch)s where project_id = %(project)s and branch = %(old)s

-- name: drop_commits
-- What a log gave as a commit and can be none.
update documents set commit = null
where project_id = %(project)s and kind = 'session' and commit !~ '^[0-9A-Fa-f]{7,64}$'

-- name: refusals
select model_id, content_hash, reason from embedding_backlog
where tenant_id = %(tenant)s and reason is not null

-- name: change_refusal
update embedding_backlog set reason = %(reason)s
where model_id = %(model_id)s and content_hash = %(content_hash)s

-- name: runs
select id, summary from runs where tenant_id = %(tenant)s and summary is not null

-- name: change_run
update runs set summary = %(summary)s where id = %(id)s

-- name: calibrations
select project_id, set_name from calibrations where project_id = %(project)s

-- name: change_calibration
update calibrations set set_name = %(set_name)s where project_id = %(project)s

-- name: records
select document_id, status_text, deciders, supersedes, superseded_by
from records where project_id = %(project)s
order by document_id

-- name: change_record
update records
set status_text = %(status_text)s, deciders = %(deciders)s, supersedes = %(supersedes)s,
    superseded_by = %(superseded_by)s
where document_id = %(document_id)s

-- name: change_session_log
-- Without its stamp the next run reads it again.
update session_logs
set path = %(path)s, parts = %(parts)s, problems = %(problems)s, left_out = %(left_out)s,
    refused = %(refused)s, beside = %(beside)s, stamp = ''
where project_id = %(project)s and path = %(old)s

-- name: rewrite_documents
vacuum (full, analyze) documents

-- name: rewrite_chunks
vacuum (full, analyze) chunks

-- name: rewrite_lexical
vacuum (full, analyze) lexical

-- name: rewrite_term_stats
vacuum (full, analyze) term_stats

-- name: rewrite_embeddings
vacuum (full, analyze) embeddings

-- name: rewrite_coverage
vacuum (full, analyze) coverage

-- name: rewrite_embedding_backlog
vacuum (full, analyze) embedding_backlog

-- name: rewrite_recorded_questions
vacuum (full, analyze) recorded_questions

-- name: rewrite_runs
vacuum (full, analyze) runs

-- name: rewrite_projects
vacuum (full, analyze) projects

-- name: rewrite_records
vacuum (full, analyze) records

-- name: rewrite_session_logs
vacuum (full, analyze) session_logs

-- name: rewrite_project_commits
vacuum (full, analyze) project_commits

-- name: rewrite_calibrations
vacuum (full, analyze) calibrations
