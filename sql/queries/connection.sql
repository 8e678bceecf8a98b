-- What every new connection is asked first.

-- name: server_facts
select current_setting('server_version_num')::integer as version,
       (select extversion from pg_extension where extname = 'vector') as pgvector,
       (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
         where e.extname = 'vector') as pgvector_schema,
       exists (select from pg_available_extensions where name = 'vector') as pgvector_available,
       pg_is_in_recovery() as read_only

-- name: create_extension
create extension if not exists vector

-- name: set_search_path
select set_config('search_path', 'concordance,' || quote_ident(%(pgvector_schema)s) || ',pg_temp', false)

-- name: create_database
create database {name}

-- name: database_exists
select exists (select from pg_database where datname = %(name)s) as found
