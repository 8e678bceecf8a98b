-- What a reader's login asks instead: the same names with the room before them, the same parameters
-- and columns. A reader has functions and no table; see sql/migrations/0009_readers.sql,
-- 0010_tenant_lexemes.sql and 0012_reader_documents.sql.

-- name: login
-- Whether this login has a reader's functions and no table; and whether it has the tables, while
-- the policies hide their rows from it. Before the first migration neither is so.
select coalesce(
           not has_table_privilege(c.oid, 'select')
           and has_function_privilege(to_regprocedure('concordance.reader_tenant()'), 'execute'),
           false) as reader,
       coalesce(
           has_table_privilege(c.oid, 'select')
           and to_regclass('concordance.tenant_access') is not null
           and not pg_has_role(session_user, c.relowner, 'member') and not r.rolbypassrls,
           false) as hidden,
       session_user::text as login, pg_get_userbyid(c.relowner)::text as owner
from pg_roles r left join pg_class c on c.oid = to_regclass('concordance.tenants')
where r.rolname = current_user

-- name: whose
select id, slug, migration from concordance.reader_tenant()

-- name: embeddings_active_model
select id, provider, model, digest, dimensions, document_prefix, query_prefix, chunk_text_version,
       fingerprint
from concordance.reader_model()

-- name: coverage_list
select project, scope, state, reason, found, indexed, empty, failed, skipped, chunks,
       chunks_with_vector, chunks_refused, embedding_error, secrets, model, indexed_commit,
       remote_commit, last_attempt, last_success, last_complete, fingerprint, turns, turns_left_out,
       last_event
from concordance.reader_coverage(%(slugs)s::text[])

-- name: search_targets
select project_id, slug, scope, state, reason, indexed_commit, last_success, fingerprint, chunks,
       chunks_with_vector, chunks_refused, in_all
from concordance.reader_targets(%(slugs)s::text[], %(scopes)s::text[])

-- name: calibrations_find
select project_slug as project, set_name, questions_hash, fitted_on, checked_on, model, model_name,
       vector_weight, threshold, confidence, figures, made_at
from concordance.reader_calibration(%(project)s)

-- name: lexical_terms
select language, passages, lexeme, dimension, occurrences, passages_with, largest, asked, shared
from concordance.reader_terms(%(question)s, %(projects)s::integer[], %(most)s)

-- name: lexical_top
select chunk_id, score
from concordance.reader_top(%(languages)s::text[], %(vectors)s::text[], %(conditions)s::text[], null,
    %(projects)s::integer[], %(scopes)s::text[], %(prefix)s::text, %(since)s::timestamptz,
    %(adr_status)s::text[], %(pool)s)

-- name: lexical_top_ts_rank_cd
select chunk_id, score
from concordance.reader_top(%(languages)s::text[], null, %(conditions)s::text[], %(words)s::text[],
    %(projects)s::integer[], %(scopes)s::text[], %(prefix)s::text, %(since)s::timestamptz,
    %(adr_status)s::text[], %(pool)s)

-- name: search_count_narrow
select concordance.reader_count(%(projects)s::integer[], %(scopes)s::text[], %(prefix)s::text,
    %(since)s::timestamptz, %(adr_status)s::text[], %(most)s)

-- name: search_count_wordless
select concordance.reader_wordless(%(projects)s::integer[], %(scopes)s::text[], %(most)s)

-- name: search_vector_leg
select chunk_id, score
from concordance.reader_nearest({model}, %(vector)s, %(projects)s::integer[], %(scopes)s::text[],
    %(prefix)s::text, %(since)s::timestamptz, %(adr_status)s::text[], %(pool)s, 'index')

-- name: search_vector_leg_exact
select chunk_id, score
from concordance.reader_nearest({model}, %(vector)s, %(projects)s::integer[], %(scopes)s::text[],
    null, null, null, %(pool)s, 'all')

-- name: search_vector_leg_narrow
select chunk_id, score
from concordance.reader_nearest({model}, %(vector)s, %(projects)s::integer[], %(scopes)s::text[],
    %(prefix)s::text, %(since)s::timestamptz, %(adr_status)s::text[], %(pool)s, 'all')

-- name: search_candidates
select chunk_id, slug, kind, name, ordinal, share, score, cosine
from concordance.reader_candidates(%(chunks)s::bigint[], %(languages)s::text[], %(vectors)s::text[],
    %(conditions)s::text[], %(bm25)s, %(shares)s::float8[], %(operands)s::text[],
    %(term_languages)s::text[], {model}, %(vector)s, %(near)s::bigint[])

-- name: search_candidates_by_words
select chunk_id, slug, kind, name, ordinal, share, score, cosine
from concordance.reader_candidates(%(chunks)s::bigint[], %(languages)s::text[], %(vectors)s::text[],
    %(conditions)s::text[], %(bm25)s, %(shares)s::float8[], %(operands)s::text[],
    %(term_languages)s::text[])

-- name: search_candidates_by_vector
select chunk_id, slug, kind, name, ordinal, share, score, cosine
from concordance.reader_candidates(%(chunks)s::bigint[], null, null, null, null, null, null, null,
    {model}, %(vector)s)

-- name: search_passages
select chunk_id, project, location, web_url, scope, kind, name, source, title, commit, directory,
       branch, linked_commit, heading_path, start_line, end_line, event_id, last_event_id, speaker,
       occurred_at, content
from concordance.reader_passages(%(chunks)s::bigint[])

-- name: records_of_chunks
select chunk_id, document_id, name, status, status_text, decided_on, newer, names, titles
from concordance.reader_records(%(chunks)s::bigint[])

-- name: citations_document
select id, scope, status, reason, commit, chunks, chunks_with_vector, last_line
from concordance.reader_document(%(slug)s, %(kind)s, %(name)s)

-- name: citations_lines
select chunk_id, start_line, start_char, end_char
from concordance.reader_lines(%(slug)s, %(name)s, %(first)s::integer, %(last)s::integer,
    %(around)s::integer, %(most)s::integer)

-- name: citations_turns
select chunk_id, turn, start_char, end_char
from concordance.reader_turns(%(slug)s, %(name)s, %(event)s, %(around)s::integer,
    %(most)s::integer)
