-- Vector spaces, the backlog of texts without a vector, and the vectors.

-- name: active_model
select id, provider, model, digest, dimensions, document_prefix, query_prefix, chunk_text_version,
       fingerprint
from embedding_models where tenant_id = %(tenant)s and state = 'active'

-- name: register_model
insert into embedding_models (tenant_id, provider, model, digest, dimensions, document_prefix,
    query_prefix, chunk_text_version, fingerprint, state)
values (%(tenant)s, %(provider)s, %(model)s, %(digest)s, %(dimensions)s, %(document_prefix)s,
    %(query_prefix)s, %(chunk_text_version)s, %(fingerprint)s, 'building')
on conflict (tenant_id, fingerprint) do nothing

-- name: lock_models
select pg_advisory_xact_lock(%(class)s, %(tenant)s)

-- name: lock_model
select pg_advisory_xact_lock(%(class)s, %(model)s)

-- name: retire_others
update embedding_models set state = 'retired'
where tenant_id = %(tenant)s and state = 'active' and fingerprint <> %(fingerprint)s

-- name: activate
update embedding_models set state = 'active'
where tenant_id = %(tenant)s and fingerprint = %(fingerprint)s and state <> 'active'
returning id

-- name: lock_backlog
-- In the order in which workers that were refused texts lock them, before texts are asked for again
-- in the order of their passages.
select from embedding_backlog where model_id = %(model)s order by content_hash for update

-- name: adopt_vectors
-- For a space that became active: a model that was called otherwise before gave these vectors. What
-- a run is writing is passed over, and queued.
insert into embeddings (model_id, chunk_id, tenant_id, project_id, scope, content_hash, embedding)
select %(model)s, k.id, k.tenant_id, k.project_id, d.scope, k.content_hash, e.embedding
from chunks k
join documents d on d.id = k.document_id
cross join lateral (
    select x.embedding
    from embedding_models n
    join embedding_models m on m.tenant_id = n.tenant_id and m.id <> n.id
        and m.provider = n.provider and m.digest = n.digest and m.dimensions = n.dimensions
        and m.document_prefix = n.document_prefix
        and m.chunk_text_version = n.chunk_text_version
    join embeddings x on x.model_id = m.id and x.chunk_id = k.id
        and x.content_hash = k.content_hash
    where n.id = %(model)s
    order by m.id limit 1
) e
where k.tenant_id = %(tenant)s
  and not exists (select from embeddings y where y.model_id = %(model)s and y.chunk_id = k.id)
order by k.id
for key share of k skip locked
on conflict (model_id, chunk_id) do nothing

-- name: queue_missing
-- For a space that became active: every text of the tenant that has no vector in it.
insert into embedding_backlog (tenant_id, model_id, content_hash)
select k.tenant_id, %(model)s, k.content_hash
from chunks k
where k.tenant_id = %(tenant)s
  and not exists (select from embeddings e where e.model_id = %(model)s and e.chunk_id = k.id)
group by k.tenant_id, k.content_hash
order by min(k.id)
on conflict (model_id, content_hash) do update
    set generation = embedding_backlog.generation + 1

-- name: next_worker
select nextval('embedding_workers')::integer as id

-- name: lock_worker
select pg_try_advisory_lock(%(class)s, %(worker)s) as got

-- name: take_slot
-- The first place that is free. Rows of a function are looked at one after another, so no second
-- lock is taken.
select slot from generate_series(%(first)s::integer, %(last)s::integer) as slot
where pg_try_advisory_lock(%(class)s, slot)
limit 1

-- name: free_slot
select pg_advisory_unlock(%(class)s, %(slot)s)

-- name: settle
-- Texts that got their vector elsewhere in the meantime: it is copied, not made again.
insert into embeddings (model_id, chunk_id, tenant_id, project_id, scope, content_hash, embedding)
select %(model)s, k.id, k.tenant_id, k.project_id, d.scope, k.content_hash, e.embedding
from chunks k
join documents d on d.id = k.document_id
cross join lateral (
    select x.embedding from embeddings x
    where x.model_id = %(model)s and x.content_hash = k.content_hash
    order by x.chunk_id limit 1
) e
where k.tenant_id = %(tenant)s and k.content_hash = any(%(hashes)s)
  and not exists (
    select from embeddings y
    where y.model_id = %(model)s and y.chunk_id = k.id and y.content_hash = k.content_hash)
order by k.id
for key share of k skip locked
on conflict (model_id, chunk_id) do update
    set (content_hash, embedding) = (excluded.content_hash, excluded.embedding)
    where embeddings.content_hash <> excluded.content_hash

-- name: drop_settled
-- Texts that no passage wants any more: one with a vector of less than its text wants the whole one
-- all the same. The generation tells whether a run asked for one again
-- while this statement looked. Rows that a run is writing are asked for again, so nobody waits.
with settled as (
    select b.content_hash, b.generation
    from embedding_backlog b
    where b.model_id = %(model)s
      and (%(hashes)s::bytea[] is null or b.content_hash = any(%(hashes)s))
      and not exists (
        select from chunks k
        where k.tenant_id = b.tenant_id and k.content_hash = b.content_hash
          and not exists (
            select from embeddings e
            where e.model_id = b.model_id and e.chunk_id = k.id
              and e.content_hash = k.content_hash))
), still as (
    select b.content_hash
    from embedding_backlog b
    join settled s on s.content_hash = b.content_hash and s.generation = b.generation
    where b.model_id = %(model)s
    for update of b skip locked
)
delete from embedding_backlog b
using still s
where b.model_id = %(model)s and b.content_hash = s.content_hash
returning b.content_hash

-- name: claim
-- Workers claim one after another, so no claim is judged by locks that are older than itself. Each
-- goes forward from where it was, and asks
-- for each text whether somebody wants it (a subquery with a limit stays one): no claim looks at
-- the whole backlog.
with candidate as (
    select b.model_id, b.content_hash
    from embedding_backlog b
    where b.model_id = %(model)s
      and b.position > %(after)s
      and b.attempts < %(attempts)s
      and (b.attempted_at is null or b.attempted_at < %(before)s)
      and (b.claimed_by is null or b.claimed_by <> all (array(
        select l.objid::bigint::integer from pg_locks l
        where l.locktype = 'advisory' and l.classid = %(worker_class)s and l.objsubid = 2
          and l.database = (select oid from pg_database where datname = current_database()))))
      and (
        select true from chunks k
        where k.tenant_id = b.tenant_id and k.content_hash = b.content_hash
          and (%(projects)s::integer[] is null or k.project_id = any(%(projects)s))
        limit 1)
    order by b.position
    limit %(most)s
    for update of b skip locked
)
update embedding_backlog b
set claimed_by = %(worker)s
from candidate c
where b.model_id = c.model_id and b.content_hash = c.content_hash
returning b.content_hash, b.position

-- name: texts
select distinct on (k.content_hash) k.content_hash, case when k.titled then d.title end as title,
       k.heading_path, k.content, k.preceding
from chunks k join documents d on d.id = k.document_id
where k.tenant_id = %(tenant)s and k.content_hash = any(%(hashes)s)
order by k.content_hash, k.id

-- name: store
-- Only on passages that still have the text. Passages that a run is replacing are passed over;
-- their text stays in the backlog.
insert into embeddings (model_id, chunk_id, tenant_id, project_id, scope, content_hash, embedding)
select %(model)s, k.id, k.tenant_id, k.project_id, d.scope, k.content_hash, v.embedding
from unnest(%(hashes)s::bytea[], %(vectors)s::vector[]) as v (content_hash, embedding)
join chunks k on k.tenant_id = %(tenant)s and k.content_hash = v.content_hash
join documents d on d.id = k.document_id
order by k.id
for key share of k skip locked
on conflict (model_id, chunk_id) do update
    set (content_hash, embedding) = (excluded.content_hash, excluded.embedding)
    where embeddings.content_hash <> excluded.content_hash

-- name: store_less
-- Vectors of less than the text, with the hash of what they were made from: no other passage gets
-- them, and their texts stay in the backlog.
insert into embeddings (model_id, chunk_id, tenant_id, project_id, scope, content_hash, embedding)
select %(model)s, k.id, k.tenant_id, k.project_id, d.scope, v.made_from, v.embedding
from unnest(%(hashes)s::bytea[], %(sources)s::bytea[], %(vectors)s::vector[])
    as v (content_hash, made_from, embedding)
join chunks k on k.tenant_id = %(tenant)s and k.content_hash = v.content_hash
join documents d on d.id = k.document_id
order by k.id
for key share of k skip locked
on conflict (model_id, chunk_id) do nothing

-- name: release
-- A row that a run is writing stays claimed: the claim is void as soon as the worker is gone.
with own as (
    select content_hash from embedding_backlog
    where model_id = %(model)s and claimed_by = %(worker)s
    for update skip locked
)
update embedding_backlog b set claimed_by = null
from own
where b.model_id = %(model)s and b.content_hash = own.content_hash

-- name: refuse
-- Locked in the order in which runs queue texts.
with refused as (
    select b.content_hash, v.reason
    from embedding_backlog b
    join unnest(%(hashes)s::bytea[], %(reasons)s::text[]) as v (content_hash, reason)
        on v.content_hash = b.content_hash
    where b.model_id = %(model)s
    order by b.content_hash
    for update of b
)
update embedding_backlog b
set attempts = b.attempts + 1, attempted_at = %(now)s, reason = r.reason, claimed_by = null
from refused r
where b.model_id = %(model)s and b.content_hash = r.content_hash

-- name: forgive
with refused as (
    select content_hash from embedding_backlog
    where model_id = %(model)s and attempts > 0
    order by content_hash
    for update
)
update embedding_backlog b set attempts = 0
from refused r
where b.model_id = %(model)s and b.content_hash = r.content_hash

-- name: pending
select count(*) as pending,
       count(*) filter (where b.attempts >= %(attempts)s) as given_up
from embedding_backlog b
where b.model_id = %(model)s
  and exists (
    select from chunks k
    where k.tenant_id = b.tenant_id and k.content_hash = b.content_hash
      and (%(projects)s::integer[] is null or k.project_id = any(%(projects)s)))

-- name: vector_count
select count(*) as vectors from embeddings where model_id = %(model)s

-- name: vector_index_exists
-- Not to_regclass: that answers from a cache, which does not know what was made while we waited.
select exists (
    select from pg_indexes where schemaname = 'concordance' and indexname = %(name)s) as found

-- name: create_vector_index
select create_vector_index(%(model)s, %(dimensions)s)
