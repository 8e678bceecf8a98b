-- What was fitted on questions with known answers, and such questions as people recorded.

create table calibrations (
    project_id     integer primary key references projects on delete cascade,
    tenant_id      integer not null references tenants on delete cascade,
    set_name       text not null,           -- the folder's name
    questions_hash text not null,           -- of the questions and their answers
    fitted_on      integer not null,        -- questions
    checked_on     integer not null,        -- other questions
    model          text not null,           -- the vector space's fingerprint: cosines are its own
    model_name     text not null,
    vector_weight  double precision,        -- null: the default holds
    threshold      double precision,        -- likewise
    confidence     jsonb,                   -- likewise
    figures        jsonb not null,          -- what the check came to
    made_at        timestamptz not null
);

create table recorded_questions (
    id          bigint generated always as identity primary key,
    tenant_id   integer not null references tenants on delete cascade,
    project_id  integer not null references projects on delete cascade,
    question    text not null,
    kind        text not null check (kind in ('file', 'session')),
    name        text not null,              -- of the document that holds the answer
    start_line  integer,                    -- of a file, both ends included
    end_line    integer,
    event_id    text,                       -- of a session
    recorded_at timestamptz not null
);
-- By hashes: an index entry can't hold every question.
create unique index recorded_questions_once on recorded_questions
    (project_id, md5(question), kind, md5(name), start_line, end_line, md5(event_id))
    nulls not distinct;
