-- What each session log held when it was read last.

-- name: stored
select path, stamp, reader, format, parts, problems, left_out, last_event, refused, beside
from session_logs where project_id = %(project)s

-- name: save
insert into session_logs (project_id, tenant_id, path, stamp, reader, format, turns, left_out,
    last_event, parts, problems, refused, beside)
values (%(project)s, %(tenant)s, %(path)s, %(stamp)s, %(reader)s, %(format)s, %(turns)s,
    %(left_out)s, %(last_event)s, %(parts)s, %(problems)s, %(refused)s, %(beside)s)
on conflict (project_id, path) do update
    set (stamp, reader, format, turns, left_out, last_event, parts, problems, refused, beside) = (
        excluded.stamp, excluded.reader, excluded.format, excluded.turns, excluded.left_out,
        excluded.last_event, excluded.parts, excluded.problems, excluded.refused, excluded.beside)

-- name: forget
delete from session_logs
where project_id = %(project)s and not path = any(%(paths)s)

-- name: stamps
select path, stamp, reader from session_logs where project_id = %(project)s

-- name: read_events
-- Asked of the caller's own database: each session whole, in an order that does not hang on how the
-- rows lie.
select given.*
from ({query}
) as given
where (%(after)s::text is null or given.session_id::text collate "C" > %(after)s)
  and (%(wanted)s::text[] is null or given.session_id::text = any(%(wanted)s))
order by given.session_id::text collate "C", given.occurred_at, given.event_id::text collate "C",
    given.type::text collate "C", given.text::text collate "C"

-- name: read_marker
-- Likewise.
select given::text as marker from ({query}
) as given
