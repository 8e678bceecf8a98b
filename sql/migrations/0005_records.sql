-- What files say of themselves as decision records, and which record replaced which.

-- A file has a row if it says anything of the kind, in whatever scope it is: one that is moved into
-- a folder of decisions is not read again. Only those of the scope `adr` are records.
create table records (
    document_id   bigint primary key references documents on delete cascade,
    tenant_id     integer not null references tenants on delete cascade,
    project_id    integer not null references projects on delete cascade,
    status        text not null check (status in
        ('proposed', 'accepted', 'rejected', 'deprecated', 'superseded', 'unknown')),
    status_text   text,                 -- the status as it is written
    decided_on    date,
    deciders      text[] not null,
    supersedes    jsonb not null,       -- references as they are written: [{"text": …, "target": …}]
    superseded_by jsonb not null
);
create index records_project on records (project_id);

-- Only what is certain: a contested, broken or circular claim makes no row. Made anew from `records`
-- at the end of each run, as a reference means something beside all other records alone.
create table successions (
    older_id   bigint not null references documents on delete cascade,
    newer_id   bigint not null references documents on delete cascade,
    tenant_id  integer not null references tenants on delete cascade,
    project_id integer not null references projects on delete cascade,
    primary key (older_id, newer_id)
);
create index successions_newer on successions (newer_id);
create index successions_project on successions (project_id);

-- Whether a document is a decision record of one of these states.
create function has_adr_status(document bigint, scope text, wanted text[]) returns boolean
language sql stable parallel safe
return scope = 'adr' and coalesce(
    (select r.status from records r where r.document_id = document), 'unknown') = any(wanted);

-- Until the next run has read them nothing may be called complete: statuses are missing, and so are
-- files of formats that were not read before.
update coverage
set attempt_open = true, state = 'stale', reason = 'its decision records are read by the next run'
where scope in ('docs', 'adr') and last_success is not null;
