-- The text index is one for all tenants. Each passage's words hold a mark of its tenant, too, and what a
-- reader asks is met by passages with its own mark alone: the index itself leaves the others out, so
-- that counters of rows that were read tell nothing of them. The marks of scopes, all of them in one
-- condition, would do the same, and take the longer the more projects there are.

create function tenant_lexeme(tenant integer) returns text
language sql immutable parallel safe
return '§@' || tenant;

create or replace function place_lexemes(language regconfig, project integer, scope text) returns tsvector
language sql stable parallel safe
return array_to_tsvector(array['§' || project || '.' || scope, '§' || language::text])
    || coalesce((select array_to_tsvector(array[tenant_lexeme(p.tenant_id)])
                 from projects p where p.id = project), '');

-- What a run of the earlier version has analysed it writes before the rows are marked: whoever writes
-- words has written to `documents` in the same transaction.
lock table documents in share mode;

-- Each row gets a new version, which the text index would have to take up one by one.
drop index lexical_lexemes;
update lexical l set lexemes = l.lexemes || array_to_tsvector(array[tenant_lexeme(l.tenant_id)]);
create index lexical_lexemes on lexical using gin (lexemes);

-- The best passages that meet conditions, as before. A condition without a word is met by none. What the
-- index would leave out at random depends on how many passages of all tenants hold a word.
create or replace function reader_top(
    languages text[], vectors text[], conditions text[], words text[], projects integer[] default null,
    scopes text[] default null, path_prefix text default null, since timestamptz default null,
    adr_status text[] default null, pool integer default 100)
returns table (chunk_id bigint, score double precision)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on
set plan_cache_mode = force_custom_plan set gin_fuzzy_search_limit = 0 as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
    own    integer[] := own_projects(tenant, reader_top.projects);
    kept   text[] := own_scopes(reader_top.scopes);
    place  tsquery := quote_literal(tenant_lexeme(tenant))::tsquery;
    narrow boolean := not (path_prefix is null and since is null and adr_status is null);
begin
    if vectors is null then
        return query
        select f.chunk_id, f.score
        from unnest(reader_top.languages, reader_top.words::tsquery[],
                    reader_top.conditions::tsquery[]) as q (language, words, condition)
        cross join lateral (
            select l.chunk_id, ts_rank_cd(l.lexemes, q.words)::float8 as score
            from lexical l
            where l.lexemes @@ (place && q.condition) and numnode(q.condition) > 0
              and l.language = q.language
              and l.project_id = any(own) and l.scope = any(kept)
              and (narrow = false or exists (
                select from chunks k join documents d on d.id = k.document_id
                where k.id = l.chunk_id
                  and (reader_top.path_prefix is null
                       or (d.kind = 'file' and starts_with(d.name, reader_top.path_prefix)))
                  and (reader_top.since is null or k.occurred_at >= reader_top.since)
                  and (reader_top.adr_status is null
                       or has_adr_status(d.id, d.scope, reader_top.adr_status))))
            order by score desc, l.chunk_id
            limit reader_top.pool
        ) f
        order by f.score desc, f.chunk_id
        limit reader_top.pool;
        return;
    end if;
    return query
    select f.chunk_id, f.score
    from unnest(reader_top.languages, reader_top.vectors::sparsevec[],
                reader_top.conditions::tsquery[]) as q (language, vector, condition)
    cross join lateral (
        select l.chunk_id, -(l.weights <#> q.vector) as score
        from lexical l
        where l.lexemes @@ (place && q.condition) and numnode(q.condition) > 0
          and l.language = q.language
          and l.project_id = any(own) and l.scope = any(kept)
          and (narrow = false or exists (
            select from chunks k join documents d on d.id = k.document_id
            where k.id = l.chunk_id
              and (reader_top.path_prefix is null
                   or (d.kind = 'file' and starts_with(d.name, reader_top.path_prefix)))
              and (reader_top.since is null or k.occurred_at >= reader_top.since)
              and (reader_top.adr_status is null
                   or has_adr_status(d.id, d.scope, reader_top.adr_status))))
        order by score desc, l.chunk_id
        limit reader_top.pool
    ) f
    order by f.score desc, f.chunk_id
    limit reader_top.pool;
end
$$;
