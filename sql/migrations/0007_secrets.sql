-- How many secrets were replaced by marks, by kind: of a document, and of a scope.

alter table documents add column secrets jsonb not null default '{}';
alter table coverage add column secrets jsonb not null default '{}';

-- Until a run has read them again without their secrets, nothing may be called complete.
update coverage
set attempt_open = true, state = 'stale', reason = 'its secrets are scrubbed by the next run'
where chunks > 0;
