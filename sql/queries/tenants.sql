-- Which login reads which tenant, and whether the protection of the rows is whole.

-- name: tenants
select slug from tenants order by slug

-- name: login_facts
-- What keeps a login from being a reader. One that may act as the owner of the tables, or is above
-- row level security, reads everything whatever it is granted; so does one that may read the server's
-- files, or copy them.
select r.oid is not null as there, coalesce(r.rolcanlogin, false) as may_log_in,
       coalesce(r.rolsuper or r.rolbypassrls or r.rolreplication
                or pg_has_role(r.oid, 'pg_read_server_files', 'member')
                or pg_has_role(r.oid, 'pg_write_server_files', 'member')
                or pg_has_role(r.oid, 'pg_execute_server_program', 'member'), false) as above_rows,
       coalesce(pg_has_role(r.oid, c.relowner, 'member')
                or pg_has_role(r.oid, to_regrole('concordance_functions'), 'member'), false) as member,
       s.rolname as me, to_regrole('concordance_functions') is not null as functions_there
from pg_roles s
cross join (select relowner from pg_class where oid = 'concordance.tenants'::regclass) c
left join pg_roles r on r.rolname = %(login)s
where s.rolname = current_user

-- name: make_login
create role {login} login

-- name: make_functions
create role concordance_functions nologin

-- name: join_functions
grant concordance_functions to {me} with inherit true, set true

-- name: join_owner
grant {owner} to {login}

-- name: arrange
select arrange_readers()

-- name: bind
insert into tenant_access (login, tenant_id, granted_at)
select %(login)s, t.id, %(now)s from tenants t where t.slug = %(tenant)s
on conflict (login) do update
    set tenant_id = excluded.tenant_id, granted_at = excluded.granted_at
    where tenant_access.tenant_id <> excluded.tenant_id

-- name: admit
select admit_reader(%(login)s)

-- name: unbind
delete from tenant_access where login = %(login)s

-- name: dismiss
select dismiss_reader(rolname) from pg_roles where rolname = %(login)s

-- name: list
select a.login, t.slug as tenant, a.granted_at, r.rolname is not null as there
from tenant_access a
join tenants t on t.id = a.tenant_id
left join pg_roles r on r.rolname = a.login
order by a.login

-- name: faults
-- Everything that is not as it was set up, the worst kinds first. What is expected is told from the
-- catalogs by rule, so that a new table without protection is a fault, too. Nothing of readers is
-- expected before the first of them.
with recursive held as (
    select c.oid, c.relname, c.relowner, c.relrowsecurity, c.relforcerowsecurity, c.relacl
    from pg_class c
    where c.relnamespace = 'concordance'::regnamespace and c.relkind in ('r', 'p')
), owner as (
    select relowner as role from held where relname = 'tenants'
), functions as (
    select r.oid as role, r.rolcanlogin, r.rolsuper, r.rolbypassrls
    from pg_roles r
    where r.rolname = 'concordance_functions' and exists (select from tenant_access)
), expected as (
    select h.oid, 'indexer'::name as policy, '*'::"char" as command, h.relowner as role, 'true' as condition
    from held h where h.relname <> 'schema_migrations'
    union all
    select h.oid, 'indexer_logins', '*', 0, '( SELECT concordance.is_indexer() AS is_indexer)'
    from held h where h.relname <> 'schema_migrations'
    union all
    select h.oid, 'reader_functions', 'r', f.role, 'true'
    from held h cross join functions f
    where h.relname in ('calibrations', 'chunks', 'coverage', 'documents', 'embedding_models',
        'embeddings', 'lexical', 'project_commits', 'project_stats', 'projects', 'records',
        'session_logs', 'successions', 'tenant_access', 'tenants', 'term_stats')
), policies as (
    select p.polrelid as oid, p.polname as policy, p.polcmd as command, p.polroles as roles,
           p.polpermissive,
           regexp_replace(pg_get_expr(p.polqual, p.polrelid), '(?<!concordance\.)is_indexer\(\)',
                          'concordance.is_indexer()') as condition,
           pg_get_expr(p.polwithcheck, p.polrelid) as checked
    from pg_policy p join held h on h.oid = p.polrelid
), called as (
    select p.oid, p.oid::regprocedure::text as name, p.proowner, p.prosecdef, p.proconfig, p.proacl
    from pg_proc p where p.pronamespace = 'concordance'::regnamespace
), logins as (
    select a.login, r.oid as role, r.rolsuper or r.rolbypassrls as above, r.rolreplication
    from tenant_access a left join pg_roles r on r.rolname = a.login
), views as (
    -- Whatever shows rows of the tables with the eyes of its owner, in any schema and by any way.
    select w.ev_class as oid
    from held h
    join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = h.oid
    join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
    union
    select w.ev_class
    from views v
    join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = v.oid
    join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
)
select x.fault
from (
    select 1 as kind, format('table %%s: row level security is off', h.relname) as fault
    from held h where not h.relrowsecurity and h.relname <> 'schema_migrations'
    union all
    select 1, format('table %%s: row level security is not forced', h.relname)
    from held h where not h.relforcerowsecurity and h.relname <> 'schema_migrations'
    union all
    select 2, format('table %%s: the policy %%s is missing', e.oid::regclass, e.policy)
    from expected e left join policies p using (oid, policy) where p.oid is null
    union all
    select 2, format('table %%s: the policy %%s is not the one that was made', e.oid::regclass, e.policy)
    from expected e join policies p using (oid, policy)
    where not p.polpermissive or p.roles <> array[e.role] or p.command <> e.command
       or p.condition is distinct from e.condition or p.checked is not null
    union all
    select 2, format('table %%s: there is a policy %%s beside ours', p.oid::regclass, p.policy)
    from policies p left join expected e using (oid, policy)
    where e.oid is null and not (p.policy = 'reader_functions' and p.condition = 'true'
        and p.command = 'r' and p.roles = array[to_regrole('concordance_functions')::oid])
    union all
    select 3, 'the role concordance_functions is missing'
    where exists (select from tenant_access) and not exists (select from functions)
    union all
    select 3, 'the role concordance_functions may log in, or is above row level security'
    from functions f where f.rolcanlogin or f.rolsuper or f.rolbypassrls
    union all
    select 3, format('the role %%s may act as concordance_functions', m.member::regrole)
    from functions f join pg_auth_members m on m.roleid = f.role cross join owner o
    where (m.inherit_option or m.set_option) and not pg_has_role(m.member, o.role, 'member')
    union all
    select 3, format('the role concordance_functions may do more than read the table %%s', h.relname)
    from functions f cross join held h
    where has_table_privilege(f.role, h.oid, 'insert, update, delete, truncate, references, trigger')
    union all
    select 3, 'the role concordance_functions may make objects in the schema concordance'
    from functions f where has_schema_privilege(f.role, 'concordance', 'create')
    union all
    select 4, format('the function %%s does not run as concordance_functions', c.name)
    from called c cross join functions f
    where c.oid in (select reader_functions()) and c.proowner <> f.role
    union all
    select 4, format('the function %%s has no fixed search path', c.name)
    from called c
    where c.prosecdef and not exists (
        select from unnest(c.proconfig) as s
        where s ~ '^search_path=concordance, ?("[^"]+"|[^ ,"]+), ?pg_temp$')
    union all
    select 4, format('the function %%s lets messages or other policies through', c.name)
    from called c
    where c.prosecdef
      and not c.proconfig @> array['client_min_messages=error', 'row_security=on']
    union all
    select 4, format('the function %%s runs with rights of its owner and is none of ours', c.name)
    from called c where c.prosecdef and c.oid not in (select reader_functions())
    union all
    select 4, format('the function %%s may be called by everybody', c.name)
    from called c cross join lateral aclexplode(coalesce(c.proacl, acldefault('f', c.proowner))) as a
    where c.prosecdef and a.grantee = 0
    union all
    select 5, format('everybody has rights on the table %%s', h.relname)
    from held h cross join lateral aclexplode(h.relacl) as a where a.grantee = 0
    union all
    select 5, format('everybody may make objects in the schema %%s', n.nspname)
    from pg_namespace n
    cross join lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as a
    where a.grantee = 0 and a.privilege_type = 'CREATE' and exists (select from tenant_access)
      and (n.nspname = 'concordance' or n.oid = (
          select e.extnamespace from pg_extension e where e.extname = 'vector'))
    union all
    select 6, format('the login %%s of tenant_access is not there', l.login)
    from logins l where l.role is null
    union all
    select 6, format('the login %%s is above row level security', l.login)
    from logins l where l.above
    union all
    select 6, format('the login %%s may act as the owner of the tables or as concordance_functions', l.login)
    from logins l cross join owner o
    where not l.above and (pg_has_role(l.role, o.role, 'member')
        or pg_has_role(l.role, to_regrole('concordance_functions'), 'member'))
    union all
    select 6, format('the login %%s has rights on the table %%s', l.login, h.relname)
    from logins l cross join held h
    where not l.above
      and (has_any_column_privilege(l.role, h.oid, 'select, insert, update, references')
           or has_table_privilege(l.role, h.oid, 'delete, truncate, trigger'))
    union all
    select 6, format('the login %%s has rights on the view %%s', l.login, c.relname)
    from logins l cross join views v join pg_class c on c.oid = v.oid
    where not l.above
      and has_any_column_privilege(l.role, c.oid, 'select, insert, update, references')
      and not exists (select from pg_options_to_table(c.reloptions) o
                      where o.option_name = 'security_invoker' and o.option_value::boolean)
    union all
    select 6, format('the login %%s has rights on the sequence %%s', l.login, c.relname)
    from logins l
    join pg_class c on c.relnamespace = 'concordance'::regnamespace and c.relkind = 'S'
    where not l.above and has_sequence_privilege(l.role, c.oid, 'select, usage, update')
    union all
    select 6, format('the login %%s may copy the whole server, as it may replicate', l.login)
    from logins l where not l.above and l.rolreplication
    union all
    select 6, format('the login %%s may act as %%s, which shows more than tables', l.login, r.rolname)
    from logins l
    join pg_roles r on r.rolname in ('pg_read_server_files', 'pg_write_server_files',
        'pg_execute_server_program', 'pg_read_all_stats')
    where not l.above and pg_has_role(l.role, r.oid, 'member')
    union all
    select 6, format('the login %%s may make objects in the schema %%s', l.login, n.nspname)
    from logins l cross join pg_namespace n
    where not l.above and has_schema_privilege(l.role, n.oid, 'create')
      and (n.nspname = 'concordance' or n.oid = (
          select e.extnamespace from pg_extension e where e.extname = 'vector'))
) x
order by x.kind, x.fault
