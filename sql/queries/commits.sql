-- Commits of a project's branch.

-- name: find
select 1 from project_commits where project_id = %(project)s and id = %(commit)s and branch = %(branch)s

-- name: forget
delete from project_commits
where project_id = %(project)s
  and (branch is distinct from %(branch)s or not id = any(%(ids)s))

-- name: save
insert into project_commits (project_id, id, branch, committed_at)
select %(project)s, c.id, %(branch)s, c.committed_at
from unnest(%(ids)s::text[], %(times)s::timestamptz[]) as c (id, committed_at)
order by c.id
on conflict (project_id, id) do nothing
