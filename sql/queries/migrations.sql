-- Bookkeeping of the schema itself.

-- name: lock
select pg_advisory_xact_lock(%(key)s)

-- name: create_schema
create schema if not exists concordance

-- name: create_table
create table if not exists concordance.schema_migrations (
    number     integer primary key,
    name       text not null,
    sha256     text not null,
    applied_at timestamptz not null default now()
)

-- name: table_exists
select to_regclass('concordance.schema_migrations') is not null as found

-- name: applied
select number, name, sha256 from concordance.schema_migrations order by number

-- name: record
insert into concordance.schema_migrations (number, name, sha256)
values (%(number)s, %(name)s, %(sha256)s)
