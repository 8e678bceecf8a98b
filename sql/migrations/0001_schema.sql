-- The tables that hold the index. Times are timestamptz; every row belongs to a tenant.

create table tenants (
    id   integer generated always as identity primary key,
    slug text not null unique
);

create table projects (
    id         integer generated always as identity primary key,
    tenant_id  integer not null references tenants on delete cascade,
    slug       text not null,
    location   text not null,           -- address of the repository; never holds credentials
    web_url    text,
    branch     text,                    -- the branch that was indexed last
    language   text not null,           -- name of a text-search configuration
    run_id     uuid,                    -- the run that may write; see hold_project
    unique (tenant_id, slug)
);

create table documents (
    id         bigint generated always as identity primary key,
    tenant_id  integer not null references tenants on delete cascade,
    project_id integer not null references projects on delete cascade,
    scope      text not null check (scope in ('docs', 'adr', 'session')),
    kind       text not null check (kind in ('file', 'session')),
    name       text not null,           -- path from the repository's root, or session id
    source     text,                    -- the log file of a session
    title      text,
    content_id text not null,           -- blob id, or hash of a session's events
    bytes      bigint not null,
    status     text not null check (status in ('indexed', 'empty', 'failed', 'skipped')),
    reason     text,
    chunker    text not null,           -- fingerprint of what made the chunks
    commit     text,                    -- a commit at which the file has this content
    unique (project_id, kind, name)
);
-- Here and at the embeddings no two indexes begin alike: with statistics from an emptier table the
-- planner takes any index whose first column fits, and would read a whole model for each row.
create index documents_scope on documents (scope, project_id);

create table chunks (
    id            bigint generated always as identity primary key,
    tenant_id     integer not null references tenants on delete cascade,
    project_id    integer not null references projects on delete cascade,
    document_id   bigint not null references documents on delete cascade,
    ordinal       integer not null,
    heading_path  text[] not null,
    titled        boolean not null,     -- whether the document's title and path speak for it, too
    start_line    integer,              -- lines of a file, from 1, both ends included
    end_line      integer,
    start_char    integer not null,
    end_char      integer not null,
    event_id      text,                 -- first and last event of a session's passage
    last_event_id text,
    speaker       text,
    occurred_at   timestamptz,
    content       text not null,
    content_hash  bytea not null,       -- of title, heading path and content: what is embedded
    unique (document_id, ordinal) deferrable initially deferred
);
create index chunks_content_hash on chunks (tenant_id, content_hash);
-- For claims and counts of one project, and so that removing one does not read the whole table.
create index chunks_project on chunks (project_id, content_hash);

-- What the lexical leg scans, apart from the text: few heap pages are touched.
create table lexical (
    chunk_id   bigint primary key references chunks on delete cascade,
    tenant_id  integer not null,
    project_id integer not null,
    scope      text not null,
    lexemes    tsvector not null
);
create index lexical_lexemes on lexical using gin (lexemes);
create index lexical_scope on lexical (project_id, scope);

create table embedding_models (
    id                 integer generated always as identity primary key,
    tenant_id          integer not null references tenants on delete cascade,
    provider           text not null,
    model              text not null,
    digest             text not null,
    dimensions         integer not null check (dimensions between 1 and 4000),
    document_prefix    text not null,
    query_prefix       text not null,
    chunk_text_version integer not null,
    fingerprint        text not null,
    state              text not null check (state in ('building', 'active', 'retired')),
    unique (tenant_id, fingerprint)
);
create unique index embedding_models_one_active on embedding_models (tenant_id)
    where state = 'active';

create table embeddings (
    model_id     integer not null references embedding_models on delete cascade,
    chunk_id     bigint not null references chunks on delete cascade,
    tenant_id    integer not null,
    project_id   integer not null,
    scope        text not null,
    content_hash bytea not null,        -- the text that this vector was made from
    embedding    vector not null,
    primary key (model_id, chunk_id)
);
create index embeddings_chunk on embeddings (chunk_id);
create index embeddings_content_hash on embeddings (content_hash, model_id);
create index embeddings_scope on embeddings (project_id, scope, model_id);

-- Texts that still want a vector. A text is listed once, however many passages share it.
create table embedding_backlog (
    tenant_id    integer not null references tenants on delete cascade,
    model_id     integer not null references embedding_models on delete cascade,
    content_hash bytea not null,
    position     bigint generated always as identity,
    generation   integer not null default 1,  -- counts how often the text was asked for
    claimed_by   integer,                     -- a worker; void once its advisory lock is gone
    attempts     integer not null default 0,  -- runs in which the model refused the text
    attempted_at timestamptz,
    reason       text,
    primary key (model_id, content_hash)
);
create index embedding_backlog_order on embedding_backlog (model_id, position);
create sequence embedding_workers as integer cycle;

create table coverage (
    project_id         integer not null references projects on delete cascade,
    tenant_id          integer not null references tenants on delete cascade,
    scope              text not null check (scope in ('docs', 'adr', 'session')),
    found              integer not null default 0,
    indexed            integer not null default 0,
    empty              integer not null default 0,
    failed             integer not null default 0,
    skipped            integer not null default 0,
    chunks             integer not null default 0,
    chunks_with_vector integer not null default 0,
    chunks_refused     integer not null default 0,
    model_id           integer references embedding_models on delete set null,
    indexed_marker     text,            -- commit, or fingerprint of the logs, that the rows show
    remote_marker      text,            -- the same at the source, as last seen
    fingerprint        text,            -- of the rules that the rows were made by
    last_attempt       timestamptz,
    last_success       timestamptz,
    last_complete      timestamptz,
    attempt_open       boolean not null default false,
    attempt_error      text,
    embedding_error    text,
    state              text not null
        check (state in ('complete', 'lexical_only', 'partial', 'failed', 'stale', 'absent')),
    reason             text not null,
    primary key (project_id, scope)
);

create table runs (
    id          uuid primary key,
    tenant_id   integer not null references tenants on delete cascade,
    kind        text not null,
    started_at  timestamptz not null,
    finished_at timestamptz,
    summary     jsonb
);

-- The words of a passage. Heading words weigh more ('A') than the path's ('C') and the body's ('D').
create function passage_lexemes(
    language regconfig, path text, title text, heading_path text[], content text
) returns tsvector
language sql immutable parallel safe
return setweight(to_tsvector(language, coalesce(title, '') || ' ' || array_to_string(heading_path, ' ')), 'A')
    || setweight(to_tsvector(language, regexp_replace(coalesce(path, ''), '[^[:alnum:]]+', ' ', 'g')), 'C')
    || setweight(to_tsvector(language, content), 'D');

-- The distinct words of a question, first `most` of them in the order in which they stand.
create function question_terms(language regconfig, question text, most integer) returns text[]
language sql immutable parallel safe
return (
    select coalesce(array_agg(t.lexeme order by t.first_place, t.lexeme), '{}')
    from (
        select u.lexeme, u.positions[1] as first_place
        from unnest(to_tsvector(language, question)) as u
        order by first_place, u.lexeme
        limit most
    ) as t
);

-- Any of the words, as a query; null where there is none.
create function any_word(terms text[]) returns tsquery
language sql immutable parallel safe
return (
    select string_agg('''' || replace(replace(t, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
    from unnest(terms) as t
);

-- The index of one vector space. Above 2,000 dimensions HNSW holds half precision only.
create function create_vector_index(model integer, dimensions integer) returns void
language plpgsql as $$
begin
    execute format(
        case when dimensions <= 2000
            then 'create index if not exists %I on embeddings using hnsw ((embedding::vector(%s)) vector_cosine_ops) where model_id = %s'
            else 'create index if not exists %I on embeddings using hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops) where model_id = %s'
        end,
        'embeddings_hnsw_' || model, dimensions, model
    );
end
$$;
