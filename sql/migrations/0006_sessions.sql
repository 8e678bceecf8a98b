-- Session logs: what each log held when it was read last, where sessions were at work, and the turns
-- before a passage.

alter table documents
    add column directory text,          -- where a session was at work, as its log says
    add column branch    text;

-- Of a session the commit is the one that its work started from.
comment on column documents.commit is 'of a file: a commit at which it has this content; of a session: what it started from';

alter table chunks add column preceding text;   -- embedded with the content, not searched

create table session_logs (
    project_id integer not null references projects on delete cascade,
    tenant_id  integer not null references tenants on delete cascade,
    path       text not null,
    stamp      text not null,           -- changes when the log does
    reader     text not null,           -- fingerprint of what read it
    format     text,
    turns      integer not null,
    left_out   jsonb not null,          -- how many lines of each kind
    last_event timestamptz,
    parts      jsonb not null,          -- [session, hash, turns] each
    problems   jsonb not null,          -- [line, reason, unfinished, unit] each
    refused    text,                    -- why it could not be read
    beside     text,                    -- why it is no log
    primary key (project_id, path)
);

-- Commits of a project's branch: a session that was at work on it is linked to the last one before it.
create table project_commits (
    project_id   integer not null references projects on delete cascade,
    id           text not null,
    branch       text not null,
    committed_at timestamptz not null,
    primary key (project_id, id)
);
create index project_commits_time on project_commits (project_id, branch, committed_at);
