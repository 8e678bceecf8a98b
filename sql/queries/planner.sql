-- What Postgres's own planner knows of the tables.

-- name: outdated
-- Whether there are many more or fewer passages than when the planner looked last; it is asked before
-- any wide table is counted. Only an owner may have it look.
select c.reltuples as known, s.held
from pg_class c
cross join (select coalesce(sum(passages), 0)::float8 as held from project_stats) s
where c.oid = 'lexical'::regclass and pg_has_role(c.relowner, 'usage')
  and s.held >= %(least)s
  and abs(s.held - greatest(c.reltuples, 0)) > %(share)s * s.held

-- name: look_anew
-- Only columns that plans depend on: vectors and texts would take longest and tell nothing. A table
-- that another run is looking at is left to it.
analyze (skip_locked) term_stats, documents (project_id, scope, kind, name),
    chunks (document_id, project_id, content_hash), lexical (chunk_id, project_id, scope, language),
    embeddings (model_id, chunk_id, project_id, scope, content_hash)
