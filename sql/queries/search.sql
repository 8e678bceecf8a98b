-- The two legs of a search, and what is needed to show their finds.

-- name: begin
set transaction isolation level repeatable read, read only

-- name: tune
select set_config('hnsw.ef_search', %(ef_search)s::text, true),
       set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('statement_timeout', %(milliseconds)s::text, true)

-- name: guard
-- One message for all: a leg that fails is rolled back to here, and the other one goes on.
savepoint leg;
set local statement_timeout = {milliseconds};
set local enable_sort = {sort};
set local plan_cache_mode = {plans}

-- name: set_timeout
set local statement_timeout = {milliseconds}

-- name: give_up_leg
rollback to savepoint leg

-- name: targets
select p.id as project_id, p.slug, c.scope, c.state, c.reason,
       c.indexed_marker as indexed_commit, c.last_success, c.fingerprint, c.chunks,
       c.chunks_with_vector, c.chunks_refused,
       (select sum(a.chunks) from coverage a where a.tenant_id = %(tenant)s)::bigint as in_all
from coverage c join projects p on p.id = c.project_id
where c.tenant_id = %(tenant)s
  and (%(slugs)s::text[] is null or p.slug = any(%(slugs)s))
  and c.scope = any(%(scopes)s)
order by p.slug, array_position(array['docs', 'adr', 'session'], c.scope)

-- name: count_narrow
-- How many passages a path or a time lets through, up to a bound.
select count(*)
from (
    select
    from chunks k
    join documents d on d.id = k.document_id
    where d.project_id = any(%(projects)s) and d.scope = any(%(scopes)s)
      and (%(prefix)s::text is null or (d.kind = 'file' and starts_with(d.name, %(prefix)s)))
      and (%(since)s::timestamptz is null or k.occurred_at >= %(since)s)
      and (%(adr_status)s::text[] is null or has_adr_status(d.id, d.scope, %(adr_status)s))
    limit %(most)s
) x

-- name: count_wordless
-- How many passages of some scopes have no words yet, up to a bound.
select count(*)
from (
    select
    from chunks k
    join documents d on d.id = k.document_id
    where d.project_id = any(%(projects)s) and d.scope = any(%(scopes)s)
      and not exists (select from lexical l where l.chunk_id = k.id)
    limit %(most)s
) x

-- name: vector_leg
-- The index gives them nearly in order, and drops none for being late; the order is made outside.
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
          and (%(since)s::timestamptz is null or k.occurred_at >= %(since)s)
          and (%(adr_status)s::text[] is null or has_adr_status(d.id, d.scope, %(adr_status)s))))
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
    offset 0
) x
order by x.distance, x.chunk_id
limit %(pool)s

-- name: vector_leg_narrow
-- The same from the documents on: of a path or a time few vectors are compared.
select x.chunk_id, 1 - x.distance as score
from (
    select e.chunk_id, e.embedding::{type}({dimensions}) <=> %(vector)s::{type}({dimensions}) as distance
    from documents d
    join chunks k on k.document_id = d.id
    join embeddings e on e.chunk_id = k.id and e.model_id = {model}
    where d.project_id = any(%(projects)s) and d.scope = any(%(scopes)s)
      and (%(prefix)s::text is null or (d.kind = 'file' and starts_with(d.name, %(prefix)s)))
      and (%(since)s::timestamptz is null or k.occurred_at >= %(since)s)
      and (%(adr_status)s::text[] is null or has_adr_status(d.id, d.scope, %(adr_status)s))
    offset 0
) x
order by x.distance, x.chunk_id
limit %(pool)s

-- name: candidates
-- What both legs say of given passages, and what orders them where they say the same. `condition` is
-- what another ranking than BM25 asks for, none where no passage can meet it; `share` is null where
-- a passage holds none of the words. The cosine of those that are `near` is known already.
select l.chunk_id, p.slug, d.kind, d.name, l.ordinal, m.share,
       case when m.share is null then null
            when %(bm25)s then -(l.weights <#> q.vector)
            when l.lexemes @@ q.condition
                then ts_rank_cd(l.lexemes, q.condition)::float8 end as score,
       1 - (e.embedding::{type}({dimensions}) <=> %(vector)s::{type}({dimensions})) as cosine
from lexical l
join documents d on d.id = l.document_id
join projects p on p.id = l.project_id
left join unnest(%(languages)s::text[], %(vectors)s::text[]::sparsevec[],
                 %(conditions)s::text[]::tsquery[]) as q (language, vector, condition)
    on q.language = l.language
left join embeddings e on e.model_id = {model}
    and e.chunk_id = case when l.chunk_id <> all(%(near)s::bigint[]) then l.chunk_id end
cross join lateral (
    select sum(t.share) as share
    from unnest(%(term_languages)s::text[], %(shares)s::float8[], %(operands)s::text[]::tsquery[])
        as t (language, share, operand)
    where t.language = l.language and l.lexemes @@ t.operand
) m
where l.chunk_id = any(%(chunks)s::bigint[])

-- name: candidates_by_words
-- The same without the vector leg, which was not asked or has failed.
select l.chunk_id, p.slug, d.kind, d.name, l.ordinal, m.share,
       case when m.share is null then null
            when %(bm25)s then -(l.weights <#> q.vector)
            when l.lexemes @@ q.condition
                then ts_rank_cd(l.lexemes, q.condition)::float8 end as score,
       null::float8 as cosine
from lexical l
join documents d on d.id = l.document_id
join projects p on p.id = l.project_id
left join unnest(%(languages)s::text[], %(vectors)s::text[]::sparsevec[],
                 %(conditions)s::text[]::tsquery[]) as q (language, vector, condition)
    on q.language = l.language
cross join lateral (
    select sum(t.share) as share
    from unnest(%(term_languages)s::text[], %(shares)s::float8[], %(operands)s::text[]::tsquery[])
        as t (language, share, operand)
    where t.language = l.language and l.lexemes @@ t.operand
) m
where l.chunk_id = any(%(chunks)s::bigint[])

-- name: candidates_by_vector
-- The same without the lexical leg, or of passages whose words are not written yet.
select k.id as chunk_id, p.slug, d.kind, d.name, k.ordinal, null::float8 as share,
       null::float8 as score,
       1 - (e.embedding::{type}({dimensions}) <=> %(vector)s::{type}({dimensions})) as cosine
from chunks k
join documents d on d.id = k.document_id
join projects p on p.id = d.project_id
left join embeddings e on e.chunk_id = k.id and e.model_id = {model}
where k.id = any(%(chunks)s::bigint[])

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
