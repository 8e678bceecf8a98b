-- Decision records: what is stored of them, and which replaced which.

-- name: forget
delete from records where document_id = any(%(documents)s)

-- name: write
insert into records (document_id, tenant_id, project_id, status, status_text, decided_on, deciders,
    supersedes, superseded_by)
select d.id, %(tenant)s, %(project)s, r.status, r.status_text, r.decided_on,
       array(select jsonb_array_elements_text(r.deciders)), r.supersedes, r.superseded_by
from jsonb_to_recordset(%(records)s::jsonb) as r (name text, status text, status_text text,
    decided_on date, deciders jsonb, supersedes jsonb, superseded_by jsonb)
join documents d on d.project_id = %(project)s and d.kind = 'file' and d.name = r.name

-- name: of_project
select d.id as document_id, d.name, d.title, d.commit, coalesce(r.status, 'unknown') as status,
       r.status_text, r.decided_on, coalesce(r.deciders, '{}') as deciders,
       coalesce(r.supersedes, '[]') as supersedes, coalesce(r.superseded_by, '[]') as superseded_by
from documents d
left join records r on r.document_id = d.id
where d.project_id = %(project)s and d.scope = 'adr' and d.kind = 'file' and d.status = 'indexed'
order by d.name

-- name: settle_successions
with wanted as (
    select w.older_id, w.newer_id
    from unnest(%(older)s::bigint[], %(newer)s::bigint[]) as w (older_id, newer_id)
), gone as (
    delete from successions s
    where s.project_id = %(project)s
      and not exists (
        select from wanted w where w.older_id = s.older_id and w.newer_id = s.newer_id)
)
insert into successions (older_id, newer_id, tenant_id, project_id)
select w.older_id, w.newer_id, %(tenant)s, %(project)s from wanted w
order by w.older_id, w.newer_id
on conflict do nothing

-- name: of_chunks
-- Passages first, then the document of each (a subquery with a limit stays one): without statistics
-- the planner would begin with all records there are.
with found as materialized (
    select k.id as chunk_id, k.document_id from chunks k where k.id = any(%(chunks)s)
)
select f.chunk_id, d.id as document_id, d.name, coalesce(r.status, 'unknown') as status,
       r.status_text, r.decided_on, n.newer, n.names, n.titles
from found f
cross join lateral (
    select x.id, x.name, x.scope, x.kind from documents x where x.id = f.document_id limit 1
) d
left join records r on r.document_id = d.id
cross join lateral (
    select coalesce(array_agg(x.id order by x.name), '{}') as newer,
           coalesce(array_agg(x.name order by x.name), '{}') as names,
           coalesce(array_agg(x.title order by x.name), '{}') as titles
    from successions s join documents x on x.id = s.newer_id
    where s.older_id = d.id
) n
where d.scope = 'adr' and d.kind = 'file'
