-- Turns of each session where they stand once: a session may lie in several logs, such as a log and its
-- copy in another folder, and coverage counted it for each.

alter table documents add column turns integer;     -- of a session: what was said in it

-- Until the session is read again, what the fullest of its logs holds.
update documents d set turns = k.turns
from (
    select l.project_id, p.part ->> 0 as name, max((p.part ->> 2)::integer) as turns
    from session_logs l cross join lateral jsonb_array_elements(l.parts) as p(part)
    group by 1, 2
) k
where d.kind = 'session' and k.project_id = d.project_id and k.name = d.name;

create or replace function reader_coverage(slugs text[] default null)
returns table (project text, scope text, state text, reason text, found integer, indexed integer,
    empty integer, failed integer, skipped integer, chunks integer, chunks_with_vector integer,
    chunks_refused integer, embedding_error text, secrets jsonb, model text, indexed_commit text,
    remote_commit text, last_attempt timestamptz, last_success timestamptz, last_complete timestamptz,
    fingerprint text, turns bigint, turns_left_out jsonb, last_event timestamptz)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
begin
    return query
    select p.slug, c.scope, c.state, c.reason, c.found, c.indexed, c.empty, c.failed, c.skipped,
           c.chunks, c.chunks_with_vector, c.chunks_refused, c.embedding_error, c.secrets,
           m.provider || '/' || m.model, c.indexed_marker, c.remote_marker, c.last_attempt,
           c.last_success, c.last_complete, c.fingerprint, s.turns, s.turns_left_out, s.last_event
    from coverage c
    join projects p on p.id = c.project_id
    left join embedding_models m on m.id = c.model_id and m.tenant_id = tenant
    left join lateral (
        select (select coalesce(sum(y.turns), 0)::bigint from documents y
                where y.project_id = c.project_id and y.tenant_id = tenant
                  and y.kind = 'session') as turns,
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
    where c.tenant_id = tenant and p.tenant_id = tenant
      and (reader_coverage.slugs is null or p.slug = any(reader_coverage.slugs))
    order by p.slug, array_position(array['docs', 'adr', 'session'], c.scope);
end
$$;
