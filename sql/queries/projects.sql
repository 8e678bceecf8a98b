-- Tenants, projects, and the hold that a run has on a project.

-- name: find_tenant
select id from tenants where slug = %(slug)s

-- name: ensure_tenant
with made as (
    insert into tenants (slug) values (%(slug)s) on conflict (slug) do nothing returning id
)
select id from made
union all
select id from tenants where slug = %(slug)s
limit 1

-- name: ensure_project
insert into projects (tenant_id, slug, location, web_url, branch, language)
values (%(tenant)s, %(slug)s, %(location)s, %(web_url)s, null, %(language)s)
on conflict (tenant_id, slug) do update
    set location = excluded.location, web_url = excluded.web_url, language = excluded.language
    where (projects.location, projects.web_url, projects.language)
        is distinct from (excluded.location, excluded.web_url, excluded.language)

-- name: find_project
select id, slug, location, web_url, branch, language
from projects where tenant_id = %(tenant)s and slug = %(slug)s

-- name: list_projects
select id, slug, location, web_url, branch, language
from projects where tenant_id = %(tenant)s order by slug

-- name: forget_project
delete from projects where tenant_id = %(tenant)s and slug = %(slug)s

-- name: known_languages
select cfgname from pg_ts_config order by cfgname

-- name: try_lock
select pg_try_advisory_lock(%(class)s, %(project)s) as got

-- name: unlock
select pg_advisory_unlock(%(class)s, %(project)s)

-- name: hold_project
update projects set run_id = %(run)s where id = %(project)s

-- name: release_project
update projects set run_id = null where id = %(project)s and run_id = %(run)s

-- name: check_hold
-- Held to the end of the transaction, so that a run that takes over waits for this write.
select run_id = %(run)s as held from projects where id = %(project)s for share

-- name: keep_models
-- Taken by who writes passages or counts them: a space that becomes active sees what
-- they did, or they see the space.
select pg_advisory_xact_lock_shared(%(class)s, tenant_id) from projects where id = %(project)s

-- name: set_branch
update projects set branch = %(branch)s where id = %(project)s and branch is distinct from %(branch)s

-- name: start_run
insert into runs (id, tenant_id, kind, started_at) values (%(id)s, %(tenant)s, %(kind)s, %(now)s)

-- name: finish_run
update runs set finished_at = %(now)s, summary = %(summary)s where id = %(id)s
