-- The two legs of a search, and what is needed to show their finds.

-- name: begin
set transaction isolation level repeatable read, read only

-- name: tune
-- A generic plan can't prove the predicate of a model's index, nor see how many rows a filter keeps.
select set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('hnsw.ef_search', %(ef_search)s::text, true),
       set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('statement_timeout', %(milliseconds)s::text, true)

-- name: limit_time
select set_config('statement_timeout', %(milliseconds)s::text, true)

-- name: targets
select p.id as project_id, p.slug, c.scope, c.state, c.reason,
       c.indexed_marker as indexed_commit, c.last_success, c.chunks, c.chunks_with_vector,
       c.chunks_refused
from coverage c join projects p on p.id = c.project_id
where c.tenant_id = %(tenant)s
  and (%(slugs)s::text[] is null or p.slug = any(%(slugs)s))
  and c.scope = any(%(scopes)s)
order by p.slug, array_position(array['docs', 'adr', 'session'], c.scope)

-- name: vector_leg
-- The index orders by distance alone; ties at the pool's end are settled outside it.
select x.chunk_id, 1 - x.distance as score
from (
    select e.chunk_id, e.embedding::{type}({dimensions}) <=> %(vector)s::{type}({dimensions}) as distance
    from embeddings e
    where e.model_id = {model}
      and e.project_id = any(%(projects)s) and e.scope = any(%(scopes)s)
      and (%(narrow)s = false or exists (
        select from chunks k join documents d on d.id = k.document_id
        where k.id = e.chunk_id
          and (%(prefix)s::text is null or (d.kind = 'file' and starts_with(d.name, %(prefix)s)))
          and (%(since)s::timestamptz is null or k.occurred_at >= %(since)s)))
    order by e.embedding::{type}({dimensions}) <=> %(vector)s::{type}({dimensions})
    limit 2 * %(pool)s
) x
order by x.distance, x.chunk_id
limit %(pool)s

-- name: vector_leg_exact
-- The offset keeps the planner from the approximate index.
select x.chunk_id, 1 - x.distance as score
from (
    select e.chunk_id, e.embedding::{type}({dimensions}) <=> %(vector)s::{type}({dimensions}) as distance
    from embeddings e
    where e.model_id = {model}
      and e.project_id = any(%(projects)s) and e.scope = any(%(scopes)s)
      and (%(narrow)s = false or exists (
        select from chunks k join documents d on d.id = k.document_id
        where k.id = e.chunk_id
          and (%(prefix)s::text is null or (d.kind = 'file' and starts_with(d.name, %(prefix)s)))
          and (%(since)s::timestamptz is null or k.occurred_at >= %(since)s)))
    offset 0
) x
order by x.distance, x.chunk_id
limit %(pool)s

-- name: vector_scores
select e.chunk_id, 1 - (e.embedding::{type}({dimensions}) <=> %(vector)s::{type}({dimensions})) as score
from embeddings e
where e.model_id = {model} and e.chunk_id = any(%(chunks)s)

-- name: passages
select k.id as chunk_id, p.slug as project, p.location, p.web_url, d.scope, d.kind, d.name,
       d.source, d.title, d.commit, d.directory, d.branch,
       linked.id as linked_commit, k.heading_path, k.start_line, k.end_line, k.event_id,
       k.last_event_id, k.speaker, k.occurred_at, k.content
from chunks k
join documents d on d.id = k.document_id
join projects p on p.id = k.project_id
left join lateral (
    -- The last one of the session's branch before the turn.
    select c.id from project_commits c
    where c.project_id = k.project_id and c.branch = d.branch and c.committed_at <= k.occurred_at
    order by c.committed_at desc, c.id
    limit 1
) linked on d.kind = 'session'
where k.id = any(%(chunks)s) and p.tenant_id = %(tenant)s

-- name: order_keys
select k.id as chunk_id, p.slug, d.kind, d.name, k.ordinal
from chunks k
join documents d on d.id = k.document_id
join projects p on p.id = k.project_id
where k.id = any(%(chunks)s)
