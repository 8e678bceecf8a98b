-- What stands where a citation points, and around it. For readers the same is in
-- sql/migrations/0012_reader_documents.sql.

-- name: document
-- A file or a session by its name.
select d.id, d.scope, d.status, d.reason, d.commit, count(k.id) as chunks,
       count(e.chunk_id) as chunks_with_vector, max(k.end_line) as last_line
from projects p
join documents d on d.project_id = p.id
left join chunks k on k.document_id = d.id
left join embedding_models m on m.tenant_id = p.tenant_id and m.state = 'active'
left join embeddings e on e.chunk_id = k.id and e.model_id = m.id and e.content_hash = k.content_hash
where p.tenant_id = %(tenant)s and p.slug = %(slug)s and d.kind = %(kind)s and d.name = %(name)s
group by d.id

-- name: lines
-- The passages of a file that hold something of some lines or of those around them, nearest first.
select k.id as chunk_id, k.start_line, k.start_char, k.end_char
from projects p
join documents d on d.project_id = p.id and d.kind = 'file' and d.name = %(name)s
join chunks k on k.document_id = d.id
where p.tenant_id = %(tenant)s and p.slug = %(slug)s
  and k.end_line >= %(first)s - %(around)s and k.start_line <= %(last)s + %(around)s
order by greatest(%(first)s - k.end_line, k.start_line - %(last)s, 0), k.ordinal
limit %(most)s

-- name: turns
-- The passages of the turn that begins with an event, and of so many turns before and after it.
with parts as materialized (
    select k.id, k.ordinal, k.event_id, k.start_char, k.end_char,
           k.event_id is distinct from lag(k.event_id) over (order by k.ordinal) as begins
    from projects p
    join documents d on d.project_id = p.id and d.kind = 'session' and d.name = %(name)s
    join chunks k on k.document_id = d.id
    where p.tenant_id = %(tenant)s and p.slug = %(slug)s
), turns as materialized (
    select p.id, p.ordinal, p.event_id, p.start_char, p.end_char,
           count(*) filter (where p.begins) over (order by p.ordinal) as number
    from parts p
), asked as (
    select min(t.number) as number from turns t where t.event_id = %(event)s
)
select t.id as chunk_id, t.number - a.number as turn, t.start_char, t.end_char
from turns t cross join asked a
where t.number between a.number - %(around)s and a.number + %(around)s
order by abs(t.number - a.number), t.ordinal
limit %(most)s
