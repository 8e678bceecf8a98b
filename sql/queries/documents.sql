-- Documents and their chunks. A document's chunks are replaced in one transaction.

-- name: stored
select id, scope, kind, name, content_id, status, chunker
from documents where project_id = %(project)s and scope = any(%(scopes)s)

-- name: create_incoming_documents
create temporary table if not exists incoming_documents (
    position integer, scope text, kind text, name text, source text, title text, content_id text,
    bytes bigint, status text, reason text, chunker text, commit text, language text,
    secrets jsonb, directory text, branch text, turns integer
) on commit delete rows

-- name: create_incoming_chunks
create temporary table if not exists incoming_chunks (
    position integer, ordinal integer, heading_path jsonb, titled boolean, start_line integer, end_line integer,
    start_char integer, end_char integer, event_id text, last_event_id text, speaker text,
    occurred_at timestamptz, content text, content_hash bytea, preceding text,
    document_id bigint, twin integer, chunk_id bigint, is_new boolean
) on commit delete rows

-- name: copy_documents
copy incoming_documents (position, scope, kind, name, source, title, content_id, bytes, status,
    reason, chunker, commit, language, secrets, directory, branch, turns) from stdin

-- name: copy_chunks
copy incoming_chunks (position, ordinal, heading_path, titled, start_line, end_line, start_char, end_char,
    event_id, last_event_id, speaker, occurred_at, content, content_hash, preceding) from stdin

-- name: upsert_documents
insert into documents (tenant_id, project_id, scope, kind, name, source, title, content_id, bytes,
    status, reason, chunker, commit, language, secrets, directory, branch, turns)
select %(tenant)s, %(project)s, i.scope, i.kind, i.name, i.source, i.title, i.content_id, i.bytes,
    i.status, i.reason, i.chunker, i.commit, i.language, i.secrets, i.directory, i.branch,
    i.turns
from incoming_documents i
order by i.kind, i.name
on conflict (project_id, kind, name) do update
    set (scope, source, title, content_id, bytes, status, reason, chunker, commit, language,
         secrets, directory, branch, turns) = (
        excluded.scope, excluded.source, excluded.title, excluded.content_id, excluded.bytes,
        excluded.status, excluded.reason, excluded.chunker, excluded.commit, excluded.language,
        excluded.secrets, excluded.directory, excluded.branch, excluded.turns)

-- name: number_incoming
-- Chunks of one document may have the same text: the n-th of them keeps the row of the n-th before.
update incoming_chunks c
set document_id = n.document_id, twin = n.twin
from (
    select k.position, k.ordinal, d.id as document_id,
           row_number() over (partition by d.id, k.content_hash order by k.ordinal) as twin
    from incoming_chunks k
    join incoming_documents i using (position)
    join documents d on d.project_id = %(project)s and d.kind = i.kind and d.name = i.name
) n
where c.position = n.position and c.ordinal = n.ordinal

-- name: match_kept
update incoming_chunks c
set chunk_id = o.id
from (
    select k.id, k.document_id, k.content_hash,
           row_number() over (partition by k.document_id, k.content_hash order by k.ordinal) as twin
    from chunks k
    where k.document_id in (
        select d.id from documents d join incoming_documents i
            on d.project_id = %(project)s and d.kind = i.kind and d.name = i.name)
) o
where c.document_id = o.document_id and c.content_hash = o.content_hash and c.twin = o.twin

-- name: number_new
-- Their numbers are needed before they are written: the passages that they replace go last, so that
-- a text that moved from one file to another finds its vector.
update incoming_chunks c
set chunk_id = n.id, is_new = true
from (
    select o.position, o.ordinal, nextval(pg_get_serial_sequence('chunks', 'id')) as id
    from (
        select position, ordinal from incoming_chunks where chunk_id is null
        order by position, ordinal
    ) o
) n
where c.position = n.position and c.ordinal = n.ordinal

-- name: lock_unmatched
-- Before any vector is written, as a worker that stores vectors locks in this order too.
select k.id
from chunks k
join documents d on d.id = k.document_id
join incoming_documents i
    on d.project_id = %(project)s and d.kind = i.kind and d.name = i.name
where not exists (select from incoming_chunks c where c.chunk_id = k.id)
order by k.id
for update of k

-- name: delete_unmatched
delete from chunks k
using documents d, incoming_documents i
where k.document_id = d.id and d.project_id = %(project)s and d.kind = i.kind and d.name = i.name
  and not exists (select from incoming_chunks c where c.chunk_id = k.id)

-- name: move_kept
update chunks k
set ordinal = c.ordinal, start_line = c.start_line, end_line = c.end_line,
    start_char = c.start_char, end_char = c.end_char, event_id = c.event_id,
    last_event_id = c.last_event_id, speaker = c.speaker, occurred_at = c.occurred_at
from incoming_chunks c
where k.id = c.chunk_id and c.is_new is null
  and (k.ordinal, k.start_line, k.end_line, k.start_char, k.end_char, k.event_id, k.last_event_id,
       k.speaker, k.occurred_at)
      is distinct from
      (c.ordinal, c.start_line, c.end_line, c.start_char, c.end_char, c.event_id, c.last_event_id,
       c.speaker, c.occurred_at)

-- name: insert_chunks
insert into chunks (id, tenant_id, project_id, document_id, ordinal, heading_path, titled, start_line,
    end_line, start_char, end_char, event_id, last_event_id, speaker, occurred_at, content,
    content_hash, preceding)
overriding system value
select c.chunk_id, %(tenant)s, %(project)s, c.document_id, c.ordinal,
    array(select jsonb_array_elements_text(c.heading_path)), c.titled,
    c.start_line, c.end_line, c.start_char, c.end_char, c.event_id, c.last_event_id, c.speaker,
    c.occurred_at, c.content, c.content_hash, c.preceding
from incoming_chunks c
where c.is_new
order by c.position, c.ordinal

-- name: incoming_ids
select d.id
from documents d join incoming_documents i
    on d.project_id = %(project)s and d.kind = i.kind and d.name = i.name
order by d.id

-- name: reuse_vectors
-- A text that has a vector anywhere in the tenant is not embedded again.
insert into embeddings (model_id, chunk_id, tenant_id, project_id, scope, content_hash, embedding)
select m.id, k.id, k.tenant_id, k.project_id, d.scope, k.content_hash, e.embedding
from documents d
join chunks k on k.document_id = d.id
join embedding_models m on m.tenant_id = k.tenant_id and m.state <> 'retired'
cross join lateral (
    select x.embedding from embeddings x
    where x.model_id = m.id and x.content_hash = k.content_hash
    order by x.chunk_id
    limit 1
) e
where d.id = any(%(documents)s)
order by m.id, k.id
on conflict (model_id, chunk_id) do nothing

-- name: queue_texts
insert into embedding_backlog (tenant_id, model_id, content_hash)
select k.tenant_id, m.id, k.content_hash
from documents d
join chunks k on k.document_id = d.id
join embedding_models m on m.tenant_id = k.tenant_id and m.state <> 'retired'
where d.id = any(%(documents)s)
  and not exists (select from embeddings e where e.model_id = m.id and e.chunk_id = k.id)
group by k.tenant_id, m.id, k.content_hash
order by m.id, k.content_hash
on conflict (model_id, content_hash) do update
    set generation = embedding_backlog.generation + 1

-- name: rename
update documents d
set name = r.name, scope = r.scope, commit = coalesce(%(commit)s, d.commit)
from unnest(%(ids)s::bigint[], %(names)s::text[], %(scopes)s::text[]) as r (id, name, scope)
where d.id = r.id and d.project_id = %(project)s

-- name: rescope_vectors
update embeddings e
set scope = d.scope
from chunks k join documents d on d.id = k.document_id
where e.chunk_id = k.id and d.id = any(%(documents)s) and e.scope <> d.scope

-- name: delete
delete from documents where project_id = %(project)s and id = any(%(ids)s)

-- name: stamp_commit
-- Files that did not change stand at the new commit as they did at the old one.
update documents set commit = %(commit)s
where project_id = %(project)s and scope = any(%(scopes)s) and kind = 'file'
  and commit is distinct from %(commit)s

-- name: find
select d.id, d.scope, d.status, d.reason, d.commit, d.chunker,
       count(k.id) as chunks,
       count(e.chunk_id) as chunks_with_vector,
       count(b.content_hash) filter (where e.chunk_id is null and b.reason is not null)
           as chunks_refused,
       min(b.reason) filter (where e.chunk_id is null) as refusal
from documents d
left join chunks k on k.document_id = d.id
left join embedding_models m on m.tenant_id = d.tenant_id and m.state = 'active'
left join embeddings e on e.chunk_id = k.id and e.model_id = m.id and e.content_hash = k.content_hash
left join embedding_backlog b on b.model_id = m.id and b.content_hash = k.content_hash
where d.project_id = %(project)s and d.kind = %(kind)s and d.name = %(name)s
group by d.id

-- name: problems
select d.name, d.scope, d.status, d.reason, d.commit
from documents d
where d.project_id = %(project)s and d.status in ('failed', 'skipped')
order by d.scope, d.status, d.name
limit %(most)s
