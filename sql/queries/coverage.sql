-- What is in the index and how far it can be trusted. Counts come from the tables, always.

-- name: ensure
insert into coverage (project_id, tenant_id, scope, state, reason)
select %(project)s, %(tenant)s, s, 'absent', 'never indexed'
from unnest(%(scopes)s::text[]) as s
on conflict (project_id, scope) do nothing

-- name: lock
-- In one order and before any change, so that two runs never wait for each other.
select scope from coverage
where project_id = %(project)s and scope = any(%(scopes)s)
order by scope
for update

-- name: count
select p.slug as project, c.scope, c.fingerprint,
       c.indexed_marker, c.remote_marker, c.last_success, c.attempt_open, c.attempt_error,
       c.embedding_error,
       d.found, d.indexed, d.empty, d.failed, d.skipped, d.first_failure,
       k.chunks, k.chunks_with_vector, k.chunks_refused, k.first_refusal,
       s.secrets,
       m.id as model_id
from coverage c
join projects p on p.id = c.project_id
left join embedding_models m on m.tenant_id = c.tenant_id and m.state = 'active'
cross join lateral (
    select count(*) as found,
           count(*) filter (where status = 'indexed') as indexed,
           count(*) filter (where status = 'empty') as empty,
           count(*) filter (where status = 'failed') as failed,
           count(*) filter (where status = 'skipped') as skipped,
           min(name || ': ' || reason) filter (where status = 'failed') as first_failure
    from documents where project_id = c.project_id and scope = c.scope
) d
cross join lateral (
    select count(*) as chunks,
           count(e.chunk_id) as chunks_with_vector,
           count(*) filter (where e.chunk_id is null and b.reason is not null) as chunks_refused,
           min(b.reason) filter (where e.chunk_id is null) as first_refusal
    from documents x
    join chunks h on h.document_id = x.id
    left join embeddings e on e.chunk_id = h.id and e.model_id = m.id
        and e.content_hash = h.content_hash
    left join embedding_backlog b on b.model_id = m.id and b.content_hash = h.content_hash
    where x.project_id = c.project_id and x.scope = c.scope
) k
cross join lateral (
    select coalesce(jsonb_object_agg(o.kind, o.replaced), '{}') as secrets
    from (
        select e.key as kind, sum(e.value::integer) as replaced
        from documents y cross join lateral jsonb_each_text(y.secrets) as e
        where y.project_id = c.project_id and y.scope = c.scope
        group by e.key
    ) o
) s
where c.project_id = %(project)s and c.scope = any(%(scopes)s)
order by c.scope

-- name: save
update coverage
set found = %(found)s, indexed = %(indexed)s, empty = %(empty)s, failed = %(failed)s,
    skipped = %(skipped)s, chunks = %(chunks)s, chunks_with_vector = %(chunks_with_vector)s,
    chunks_refused = %(chunks_refused)s, model_id = %(model_id)s, state = %(state)s,
    reason = %(reason)s, secrets = %(secrets)s,
    last_complete = case when %(state)s = 'complete' and not %(outdated)s then %(now)s
        else last_complete end
where project_id = %(project_id)s and scope = %(scope)s

-- name: open_attempt
update coverage
set last_attempt = %(now)s, attempt_open = true, attempt_error = null,
    remote_marker = coalesce(%(marker)s, remote_marker)
where project_id = %(project)s and scope = any(%(scopes)s)

-- name: fail_attempt
update coverage
set last_attempt = %(now)s, attempt_open = false, attempt_error = %(error)s
where project_id = %(project)s and scope = any(%(scopes)s)

-- name: close_attempt
update coverage
set last_attempt = %(now)s, last_success = %(now)s, attempt_open = false, attempt_error = null,
    indexed_marker = %(marker)s, remote_marker = %(marker)s, fingerprint = %(fingerprint)s
where project_id = %(project)s and scope = any(%(scopes)s)

-- name: confirm
-- A run that opened an attempt since the survey looked keeps its own account.
with unchanged as (
    select project_id, scope from coverage
    where project_id = any(%(projects)s) and scope = any(%(scopes)s)
      and not attempt_open and attempt_error is null
    order by project_id, scope
    for update
)
update coverage c
set last_attempt = %(now)s, last_success = %(now)s,
    last_complete = case when state = 'complete' then %(now)s else last_complete end
from unchanged u
where c.project_id = u.project_id and c.scope = u.scope

-- name: set_embedding_error
update coverage set embedding_error = %(error)s
where tenant_id = %(tenant)s and embedding_error is distinct from %(error)s
  and (%(projects)s::integer[] is null or project_id = any(%(projects)s))

-- name: list
-- While an attempt is open rows come and go, so what was counted when it began holds no more: the
-- figures are counted here. The condition stands inside as well, so that nothing is counted otherwise.
select p.slug as project, c.scope, c.state, c.reason,
       coalesce(d.found, c.found) as found, coalesce(d.indexed, c.indexed) as indexed,
       coalesce(d.empty, c.empty) as empty, coalesce(d.failed, c.failed) as failed,
       coalesce(d.skipped, c.skipped) as skipped, coalesce(h.chunks, c.chunks) as chunks,
       coalesce(h.chunks_with_vector, c.chunks_with_vector) as chunks_with_vector,
       coalesce(h.chunks_refused, c.chunks_refused) as chunks_refused,
       c.embedding_error, c.secrets,
       m.provider || '/' || m.model as model,
       c.indexed_marker as indexed_commit, c.remote_marker as remote_commit, c.last_attempt,
       c.last_success, c.last_complete, c.fingerprint, s.turns, s.turns_left_out, s.last_event
from coverage c
join projects p on p.id = c.project_id
left join embedding_models m on m.id = c.model_id
left join lateral (
    select count(*) as found,
           count(*) filter (where status = 'indexed') as indexed,
           count(*) filter (where status = 'empty') as empty,
           count(*) filter (where status = 'failed') as failed,
           count(*) filter (where status = 'skipped') as skipped
    from documents where c.attempt_open and project_id = c.project_id and scope = c.scope
) d on c.attempt_open
left join lateral (
    select count(*) as chunks,
           count(e.chunk_id) as chunks_with_vector,
           count(*) filter (where e.chunk_id is null and b.reason is not null) as chunks_refused
    from documents x
    join chunks g on g.document_id = x.id
    left join embeddings e on e.chunk_id = g.id and e.model_id = c.model_id
        and e.content_hash = g.content_hash
    left join embedding_backlog b on b.model_id = c.model_id and b.content_hash = g.content_hash
    where c.attempt_open and x.project_id = c.project_id and x.scope = c.scope
) h on c.attempt_open
left join lateral (
    -- Turns are counted where they stand once: a session may lie in several logs.
    select (select coalesce(sum(y.turns), 0)::bigint from documents y
            where y.project_id = c.project_id and y.kind = 'session') as turns,
           max(l.last_event) as last_event,
           coalesce((
               select jsonb_object_agg(k.kind, k.lines order by k.kind)
               from (
                   select o.key as kind, sum(o.value::bigint) as lines
                   from session_logs x cross join lateral jsonb_each_text(x.left_out) as o
                   where x.project_id = c.project_id
                   group by o.key
               ) k), '{}') as turns_left_out
    from session_logs l where l.project_id = c.project_id
    having count(*) > 0
) s on c.scope = 'session'
where c.tenant_id = %(tenant)s and (%(slugs)s::text[] is null or p.slug = any(%(slugs)s))
order by p.slug, array_position(array['docs', 'adr', 'session'], c.scope)

-- name: outdated
-- What is written beside a row is compared as the next run compares it.
select r.scope, sum(r.documents)::bigint as documents, sum(r.logs)::bigint as logs
from (
    select d.scope, count(*) as documents, 0 as logs
    from documents d join projects p on p.id = d.project_id
    where p.tenant_id = %(tenant)s and p.slug = %(slug)s
      and d.chunker <> all(case d.kind when 'file' then %(files)s::text[] else %(sessions)s end)
    group by d.scope
    union all
    select 'session', 0, count(*)
    from session_logs l join projects p on p.id = l.project_id
    where p.tenant_id = %(tenant)s and p.slug = %(slug)s and l.reader <> all(%(readers)s::text[])
    having count(*) > 0
) r
group by r.scope

-- name: markers
select p.slug, c.scope, c.indexed_marker, c.fingerprint, c.last_success, c.attempt_error, c.attempt_open,
       c.chunks, c.chunks_with_vector
from coverage c join projects p on p.id = c.project_id
where c.tenant_id = %(tenant)s and (%(slugs)s::text[] is null or p.slug = any(%(slugs)s))

-- name: projects_of
select distinct project_id as id from coverage
where tenant_id = %(tenant)s and (%(projects)s::integer[] is null or project_id = any(%(projects)s))
order by project_id
