-- Who may read what. A login is bound to a tenant; row level security keeps every table to the
-- indexer; a reader has functions, which look at the rows of its own tenant, and no table.

create table tenant_access (
    login      text primary key,           -- as `session_user` has it
    tenant_id  integer not null references tenants on delete cascade,
    granted_at timestamptz not null
);

-- Whether the login of this session may act as the owner of the tables. Policies ask it, so that an
-- index that was restored under another owner is slow for a moment, and never seems empty.
create function is_indexer() returns boolean
language sql stable parallel safe
return pg_has_role(session_user,
    (select c.relowner from pg_class c where c.oid = 'concordance.tenants'::regclass), 'member');

-- Row level security on every table, forced on its owner, too. Only what is missing is made: each
-- change of a policy locks its table. The owner's condition is `true`: it folds away, where any
-- other one keeps the text index from being used, as `@@` is not leakproof.
create function protect_tables() returns void
language plpgsql as $$
declare
    held record;
begin
    for held in
        select c.oid, c.relname, c.relowner, c.relrowsecurity, c.relforcerowsecurity
        from pg_class c
        where c.relnamespace = 'concordance'::regnamespace and c.relkind in ('r', 'p')
          and c.relname <> 'schema_migrations'
        order by c.relname
    loop
        if not held.relrowsecurity then
            execute format('alter table concordance.%I enable row level security', held.relname);
        end if;
        if not held.relforcerowsecurity then
            execute format('alter table concordance.%I force row level security', held.relname);
        end if;
        if exists (select from pg_policy p where p.polrelid = held.oid and p.polname = 'indexer'
                     and p.polroles <> array[held.relowner]) then
            execute format('drop policy indexer on concordance.%I', held.relname);
        end if;
        if not exists (select from pg_policy p where p.polrelid = held.oid and p.polname = 'indexer') then
            execute format('create policy indexer on concordance.%I to %I using (true)',
                held.relname, pg_get_userbyid(held.relowner));
        end if;
        if not exists (select from pg_policy p
                       where p.polrelid = held.oid and p.polname = 'indexer_logins') then
            execute format('create policy indexer_logins on concordance.%I '
                'using ((select concordance.is_indexer()))', held.relname);
        end if;
    end loop;
end
$$;

-- --- what readers' functions share -----------------------------------------------------------

-- The tenant of this session's login. `session_user` is the login itself: neither `set role` nor a
-- function that runs as its owner changes it.
create function own_tenant() returns integer
language plpgsql stable as $$
declare
    found integer;
begin
    select a.tenant_id into found from tenant_access a where a.login = session_user;
    if found is null then
        raise insufficient_privilege using message = format('the login "%s" reads no tenant', session_user);
    end if;
    return found;
end
$$;

-- The projects among these that are of a tenant; all of it without a list.
create function own_projects(tenant integer, among integer[]) returns integer[]
language sql stable
return (
    select coalesce(array_agg(p.id order by p.id), '{}') from projects p
    where p.tenant_id = tenant and (among is null or p.id = any(among)));

create function own_scopes(among text[]) returns text[]
language sql immutable
return coalesce(among, array['adr', 'docs', 'session']);

-- The width of one of a tenant's vector spaces; null where it has none of that number.
create function own_width(tenant integer, model integer) returns integer
language sql stable
return (select m.dimensions from embedding_models m
        where m.id = own_width.model and m.tenant_id = own_width.tenant);

-- --- readers' functions ----------------------------------------------------------------------
-- They run as a role that owns nothing else and may only read. Their search path holds no schema
-- of a reader's, and names of temporary objects come last. Messages are kept back: `debug_print_plan`
-- would show estimates, which come from the rows of all tenants.

create function reader_tenant()
returns table (id integer, slug text, migration integer)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
begin
    return query select t.id, t.slug, (select max(m.number) from schema_migrations m)
        from tenants t where t.id = own_tenant();
end
$$;

create function reader_model()
returns table (id integer, provider text, model text, digest text, dimensions integer,
    document_prefix text, query_prefix text, chunk_text_version integer, fingerprint text)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
begin
    return query select m.id, m.provider, m.model, m.digest, m.dimensions, m.document_prefix,
            m.query_prefix, m.chunk_text_version, m.fingerprint
        from embedding_models m where m.tenant_id = own_tenant() and m.state = 'active';
end
$$;

create function reader_targets(slugs text[] default null, scopes text[] default null)
returns table (project_id integer, slug text, scope text, state text, reason text,
    indexed_commit text, last_success timestamptz, fingerprint text, chunks integer,
    chunks_with_vector integer, chunks_refused integer, in_all bigint)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
begin
    return query
    select p.id, p.slug, c.scope, c.state, c.reason, c.indexed_marker, c.last_success, c.fingerprint,
           c.chunks, c.chunks_with_vector, c.chunks_refused,
           (select sum(a.chunks) from coverage a where a.tenant_id = tenant)::bigint
    from coverage c join projects p on p.id = c.project_id
    where c.tenant_id = tenant and p.tenant_id = tenant
      and (reader_targets.slugs is null or p.slug = any(reader_targets.slugs))
      and c.scope = any(own_scopes(reader_targets.scopes))
    order by p.slug, array_position(array['docs', 'adr', 'session'], c.scope);
end
$$;

create function reader_coverage(slugs text[] default null)
returns table (project text, scope text, state text, reason text, found integer, indexed integer,
    empty integer, failed integer, skipped integer, chunks integer, chunks_with_vector integer,
    chunks_refused integer, embedding_error text, secrets jsonb, model text, indexed_commit text,
    remote_commit text, last_attempt timestamptz, last_success timestamptz, last_complete timestamptz,
    fingerprint text, turns bigint, turns_left_out jsonb, last_event timestamptz)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
begin
    return query
    select p.slug, c.scope, c.state, c.reason, c.found, c.indexed, c.empty, c.failed, c.skipped,
           c.chunks, c.chunks_with_vector, c.chunks_refused, c.embedding_error, c.secrets,
           m.provider || '/' || m.model, c.indexed_marker, c.remote_marker, c.last_attempt,
           c.last_success, c.last_complete, c.fingerprint, s.turns, s.turns_left_out, s.last_event
    from coverage c
    join projects p on p.id = c.project_id
    left join embedding_models m on m.id = c.model_id and m.tenant_id = tenant
    left join lateral (
        select sum(l.turns)::bigint as turns, max(l.last_event) as last_event,
               coalesce((
                   select jsonb_object_agg(k.kind, k.lines order by k.kind)
                   from (
                       select o.key as kind, sum(o.value::bigint) as lines
                       from session_logs x cross join lateral jsonb_each_text(x.left_out) as o
                       where x.project_id = c.project_id
                       group by o.key
                   ) k), '{}') as turns_left_out
        from session_logs l where l.project_id = c.project_id
        having count(*) > 0
    ) s on c.scope = 'session'
    where c.tenant_id = tenant and p.tenant_id = tenant
      and (reader_coverage.slugs is null or p.slug = any(reader_coverage.slugs))
    order by p.slug, array_position(array['docs', 'adr', 'session'], c.scope);
end
$$;

create function reader_calibration(project integer)
returns table (project_slug text, set_name text, questions_hash text, fitted_on integer,
    checked_on integer, model text, model_name text, vector_weight double precision,
    threshold double precision, confidence jsonb, figures jsonb, made_at timestamptz)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
begin
    return query
    select p.slug, c.set_name, c.questions_hash, c.fitted_on, c.checked_on, c.model, c.model_name,
           c.vector_weight, c.threshold, c.confidence, c.figures, c.made_at
    from calibrations c join projects p on p.id = c.project_id
    where c.project_id = reader_calibration.project and c.tenant_id = tenant and p.tenant_id = tenant;
end
$$;

-- A question's words in each language, with what the searched projects know of them. Of a very long
-- question those that stand in it most often are taken; `asked` is how many there are.
create function reader_terms(question text, projects integer[] default null, most integer default 2000)
returns table (language text, passages integer, lexeme text, dimension integer, occurrences integer,
    passages_with integer, largest real, asked integer, shared boolean)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    own integer[] := own_projects(own_tenant(), reader_terms.projects);
begin
    return query
    select q.language, q.passages, c.lexeme, lexeme_dimension(c.lexeme),
           c.occurrences, s.passages_with, s.largest, coalesce(c.asked, 0),
           exists (
             select from term_stats t
             where lexeme_dimension(t.lexeme) = lexeme_dimension(c.lexeme) and t.lexeme <> c.lexeme
               and t.language = q.language and t.project_id = any(own))
    from (
        select s.language, sum(s.passages)::integer as passages
        from project_stats s
        where s.project_id = any(own) and s.passages > 0
        group by s.language
    ) q
    left join lateral (
        select u.lexeme, coalesce(cardinality(u.positions), 1) as occurrences,
               length(a.lexemes) as asked
        from (select text_lexemes(q.language::regconfig, reader_terms.question) as lexemes offset 0) a
        cross join lateral unnest(a.lexemes) as u
        where left(u.lexeme, 1) <> '§'
        order by occurrences desc, u.positions[1], u.lexeme
        limit reader_terms.most
    ) c on true
    cross join lateral (
        select coalesce(sum(t.passages), 0)::integer as passages_with,
               coalesce(max(t.largest), 0)::real as largest
        from term_stats t
        where t.language = q.language and t.lexeme = c.lexeme and t.project_id = any(own)
    ) s
    order by q.language, c.lexeme;
end
$$;

-- The best passages that meet conditions, one for each language: ranked by BM25 with a vector of
-- weights each, or by `ts_rank_cd` of `words` where `vectors` is null.
create function reader_top(
    languages text[], vectors text[], conditions text[], words text[], projects integer[] default null,
    scopes text[] default null, path_prefix text default null, since timestamptz default null,
    adr_status text[] default null, pool integer default 100)
returns table (chunk_id bigint, score double precision)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on
set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    own  integer[] := own_projects(own_tenant(), reader_top.projects);
    kept text[] := own_scopes(reader_top.scopes);
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
            where l.lexemes @@ q.condition
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
        where l.lexemes @@ q.condition
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

-- The best passages for a question by its words, scored as `concordance.ranking.bm25` scores them:
-- every match is, so that nothing has to be computed outside.
create function reader_words(
    question text, projects integer[] default null, scopes text[] default null,
    path_prefix text default null, since timestamptz default null, adr_status text[] default null,
    pool integer default 100)
returns table (chunk_id bigint, score double precision)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    own        integer[] := own_projects(own_tenant(), reader_words.projects);
    languages  text[];
    vectors    text[];
    conditions text[];
begin
    with terms as materialized (
        select t.language, t.passages, t.lexeme, t.dimension, t.occurrences, t.passages_with, t.largest
        from reader_terms(reader_words.question, own) t
    ), sizes as materialized (
        select distinct t.language, t.passages from terms t
    ), spaced as materialized (
        select case when octet_length(t.txt) = length(t.txt) then apart(t.txt)
                    else lower(apart(without_cjk(normalize(t.txt, nfkc)))) end as txt
        from (select reader_words.question as txt) t
    ), forms as materialized (
        -- The question's words by place, as in the statement `forms`; one language needs none.
        select l.language, row_number() over () as number, fold_accents(u.lexeme) as lexeme, u.positions
        from (select s.language from sizes s union select 'simple') l
        cross join lateral (
            select u.lexeme, u.positions
            from spaced x, unnest(to_tsvector(l.language::regconfig, x.txt)) as u
            where u.positions[1] < 16383
            order by u.positions[1]
            limit 2000
        ) u
        where (select count(*) from sizes) > 1
    ), places as materialized (
        select distinct on (f.language, a.place) f.language, a.place, f.lexeme
        from forms f cross join lateral unnest(f.positions) as a (place)
        order by f.language, a.place, f.positions[1] desc
    ), words as materialized (
        -- One for each word as nobody stems it.
        select f.number, f.positions from forms f where f.language = 'simple'
    ), met as materialized (
        select distinct w.number, p.language, p.lexeme
        from words w
        cross join lateral unnest(w.positions) as a (place)
        join places p on p.place = a.place
        where p.language in (select s.language from sizes s)
    ), known as (
        select m.number, m.language, max(coalesce(t.passages_with, 0)) as held
        from met m left join terms t on t.language = m.language and t.lexeme = m.lexeme
        group by m.number, m.language
    ), elsewhere as materialized (
        -- A language's stop words are not stored, and count as held by all of its passages.
        select w.number, s.language,
               sum(coalesce(k.held, s.passages)) over (partition by w.number)
                   - coalesce(k.held, s.passages) as held
        from words w
        cross join sizes s
        left join known k on k.number = w.number and k.language = s.language
    ), others as (
        select m.language, m.lexeme, max(e.held) as held
        from met m join elsewhere e on e.number = m.number and e.language = m.language
        group by m.language, m.lexeme
    ), alike as (
        select t.lexeme, sum(t.passages_with) as held from terms t group by t.lexeme
    ), counted as (
        -- One word has one idf over all languages: its forms in the others count with its own.
        select t.language, t.passages, t.lexeme, t.dimension, t.occurrences, t.largest,
               (select sum(s.passages) from sizes s) as in_all,
               coalesce(t.passages_with + o.held, a.held) as frequency
        from terms t
        join alike a on a.lexeme = t.lexeme
        left join others o on o.language = t.language and o.lexeme = t.lexeme
        where t.passages_with > 0
    ), weighed as (
        select c.language, c.passages, c.lexeme, c.dimension, c.largest,
               c.occurrences * ln(1 + (c.in_all - least(c.frequency, c.in_all) + 0.5)::float8
                                      / (least(c.frequency, c.in_all) + 0.5)::float8) as idf
        from counted c
    ), ranked as (
        select w.language, w.passages, w.lexeme, w.dimension, w.idf,
               row_number() over (partition by w.language
                                  order by w.idf * w.largest desc, w.lexeme) as place
        from weighed w
    ), strongest as (
        select r.language, r.passages, r.lexeme, r.dimension, r.idf from ranked r where r.place <= 256
    ), asked as (
        select s.language, max(s.passages) as passages, any_word(array_agg(s.lexeme)) as condition
        from strongest s
        group by s.language
    )
    select array_agg(a.language), array_agg(v.vector), array_agg(
               -- Words of a small language may be frequent in a large one.
               case when a.passages > 2000 then a.condition::text
                    else (quote_literal('§' || a.language)::tsquery && a.condition)::text end)
    into languages, vectors, conditions
    from asked a
    cross join lateral (
        select '{' || string_agg(d.dimension || ':' || d.idf, ',') || '}/1000000000' as vector
        from (
            select s.dimension, sum(s.idf) as idf from strongest s
            where s.language = a.language
            group by s.dimension
        ) d
    ) v;
    return query
    select t.chunk_id, t.score
    from reader_top(languages, vectors, conditions, null, own, reader_words.scopes,
                    reader_words.path_prefix, reader_words.since, reader_words.adr_status,
                    reader_words.pool) t
    where languages is not null;
end
$$;

-- How many passages a path, a time or a state lets through, up to a bound.
create function reader_count(
    projects integer[], scopes text[], path_prefix text, since timestamptz, adr_status text[],
    most integer)
returns bigint
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on
set plan_cache_mode = force_custom_plan as $$
declare
    own integer[] := own_projects(own_tenant(), reader_count.projects);
begin
    return (
        select count(*)
        from (
            select
            from chunks k
            join documents d on d.id = k.document_id
            where d.project_id = any(own) and d.scope = any(own_scopes(reader_count.scopes))
              and (reader_count.path_prefix is null
                   or (d.kind = 'file' and starts_with(d.name, reader_count.path_prefix)))
              and (reader_count.since is null or k.occurred_at >= reader_count.since)
              and (reader_count.adr_status is null
                   or has_adr_status(d.id, d.scope, reader_count.adr_status))
            limit reader_count.most
        ) x);
end
$$;

-- How many passages of some scopes have no words yet, up to a bound.
create function reader_wordless(projects integer[], scopes text[], most integer)
returns bigint
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
declare
    own integer[] := own_projects(own_tenant(), reader_wordless.projects);
begin
    return (
        select count(*)
        from (
            select
            from chunks k
            join documents d on d.id = k.document_id
            where d.project_id = any(own) and d.scope = any(own_scopes(reader_wordless.scopes))
              and not exists (select from lexical l where l.chunk_id = k.id)
            limit reader_wordless.most
        ) x);
end
$$;

-- The nearest passages to a vector in the space `model`. `way` is 'index' for the approximate index,
-- 'all' to compare every vector; null chooses as `concordance.adapters.postgres.search` does.
create function reader_nearest(
    model integer, vector text, projects integer[] default null, scopes text[] default null,
    path_prefix text default null, since timestamptz default null, adr_status text[] default null,
    pool integer default 100, way text default null)
returns table (chunk_id bigint, score double precision)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on
set enable_sort = on as $$
#variable_conflict use_column
declare
    tenant  integer := own_tenant();
    own     integer[] := own_projects(tenant, reader_nearest.projects);
    kept    text[] := own_scopes(reader_nearest.scopes);
    width   integer := own_width(tenant, reader_nearest.model);
    narrow  boolean := not (path_prefix is null and since is null and adr_status is null);
    kind    text := case when width <= 2000 then 'vector' else 'halfvec' end;
    held    bigint;
    bound   bigint;
    ids     bigint[];
    scores  float8[];
    method  text := reader_nearest.way;
begin
    if width is null then
        return;
    end if;
    select coalesce(sum(c.chunks) filter (where c.project_id = any(own) and c.scope = any(kept)), 0),
           greatest(20000, least(floor(0.1 * coalesce(sum(c.chunks), 0)), 100000))
    into held, bound
    from coverage c where c.tenant_id = tenant;
    if method is null then
        method := case
            when held <= bound then 'all'
            when narrow and reader_count(own, kept, path_prefix, since, adr_status,
                                         (bound + 1)::integer) <= bound then 'all'
            else 'index' end;
    end if;
    if method = 'index' then
        -- Without statistics, as after a mass of writes, the planner would sort every vector.
        perform set_config('enable_sort', 'off', true);
        -- Not among the function's own settings: only an administrator may write those there.
        perform set_config('hnsw.ef_search', '200', true),
                set_config('hnsw.iterative_scan', 'relaxed_order', true);
        execute format($q$
            select array_agg(y.chunk_id), array_agg(y.score)
            from (
                select x.chunk_id, 1 - x.distance as score
                from (
                    select e.chunk_id, e.embedding::%1$s(%2$s) <=> $1::%1$s(%2$s) as distance
                    from embeddings e
                    where e.model_id = %3$s
                      and e.project_id = any($2) and e.scope = any($3)
                      and ($4 = false or exists (
                        select from chunks k join documents d on d.id = k.document_id
                        where k.id = e.chunk_id
                          and ($5 is null or (d.kind = 'file' and starts_with(d.name, $5)))
                          and ($6 is null or k.occurred_at >= $6)
                          and ($7 is null or has_adr_status(d.id, d.scope, $7))))
                    order by e.embedding::%1$s(%2$s) <=> $1::%1$s(%2$s)
                    limit 2 * $8
                ) x
                order by x.distance, x.chunk_id
                limit $8
            ) y$q$, kind, width, reader_nearest.model)
            into ids, scores
            using reader_nearest.vector, own, kept, narrow, path_prefix, since, adr_status, pool;
        -- Told to ask the index, the caller sees what it gave; else too few are not enough.
        if reader_nearest.way is not null or coalesce(cardinality(ids), 0) >= least(pool, held) then
            return query select u.id, u.score from unnest(ids, scores) with ordinality as u (id, score, n)
                order by u.n;
            return;
        end if;
    end if;
    perform set_config('enable_sort', 'on', true);
    if not narrow then
        return query execute format($q$
            select x.chunk_id, 1 - x.distance
            from (
                select e.chunk_id, e.embedding::%1$s(%2$s) <=> $1::%1$s(%2$s) as distance
                from embeddings e
                where e.model_id = %3$s
                  and e.project_id = any($2) and e.scope = any($3)
                offset 0
            ) x
            order by x.distance, x.chunk_id
            limit $4$q$, kind, width, reader_nearest.model)
            using reader_nearest.vector, own, kept, pool;
        return;
    end if;
    return query execute format($q$
        select x.chunk_id, 1 - x.distance
        from (
            select e.chunk_id, e.embedding::%1$s(%2$s) <=> $1::%1$s(%2$s) as distance
            from documents d
            join chunks k on k.document_id = d.id
            join embeddings e on e.chunk_id = k.id and e.model_id = %3$s
            where d.project_id = any($2) and d.scope = any($3)
              and ($4 is null or (d.kind = 'file' and starts_with(d.name, $4)))
              and ($5 is null or k.occurred_at >= $5)
              and ($6 is null or has_adr_status(d.id, d.scope, $6))
            offset 0
        ) x
        order by x.distance, x.chunk_id
        limit $7$q$, kind, width, reader_nearest.model)
        using reader_nearest.vector, own, kept, path_prefix, since, adr_status, pool;
end
$$;

-- What both legs say of given passages. Without words (`languages` null) or of passages whose words
-- are not written yet `by_vector` reads the cosine alone; without a vector there is none.
create function reader_candidates(
    chunks bigint[], languages text[], vectors text[], conditions text[], bm25 boolean,
    shares double precision[], operands text[], term_languages text[],
    model integer default null, vector text default null, near bigint[] default '{}')
returns table (chunk_id bigint, slug text, kind text, name text, ordinal integer,
    share double precision, score double precision, cosine double precision)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
    space  integer := case when reader_candidates.vector is not null
                           and own_width(tenant, reader_candidates.model) is not null
                           then reader_candidates.model end;
    half   boolean := own_width(tenant, reader_candidates.model) > 2000;
    whole_asked vector := case when not half then reader_candidates.vector::vector end;
    half_asked  halfvec := case when half then reader_candidates.vector::halfvec end;
begin
    if reader_candidates.languages is null then
        return query
        select k.id, p.slug, d.kind, d.name, k.ordinal, null::float8, null::float8,
               case when half then 1 - (e.embedding::halfvec <=> half_asked)
                    else 1 - (e.embedding <=> whole_asked) end
        from chunks k
        join documents d on d.id = k.document_id
        join projects p on p.id = d.project_id
        left join embeddings e on e.chunk_id = k.id and e.model_id = space
        where k.id = any(reader_candidates.chunks) and p.tenant_id = tenant;
        return;
    end if;
    return query
    select l.chunk_id, p.slug, d.kind, d.name, l.ordinal, m.share,
           case when m.share is null then null
                when reader_candidates.bm25 then -(l.weights <#> q.vector)
                when l.lexemes @@ q.condition
                    then ts_rank_cd(l.lexemes, q.condition)::float8 end,
           case when half then 1 - (e.embedding::halfvec <=> half_asked)
                else 1 - (e.embedding <=> whole_asked) end
    from lexical l
    join documents d on d.id = l.document_id
    join projects p on p.id = l.project_id
    left join unnest(reader_candidates.languages, reader_candidates.vectors::sparsevec[],
                     reader_candidates.conditions::tsquery[]) as q (language, vector, condition)
        on q.language = l.language
    left join embeddings e on e.model_id = space
        and e.chunk_id = case when l.chunk_id <> all(reader_candidates.near) then l.chunk_id end
    cross join lateral (
        select sum(t.share) as share
        from unnest(reader_candidates.term_languages, reader_candidates.shares,
                    reader_candidates.operands::tsquery[]) as t (language, share, operand)
        where t.language = l.language and l.lexemes @@ t.operand
    ) m
    where l.chunk_id = any(reader_candidates.chunks) and p.tenant_id = tenant;
end
$$;

create function reader_passages(chunks bigint[])
returns table (chunk_id bigint, project text, location text, web_url text, scope text, kind text,
    name text, source text, title text, commit text, directory text, branch text,
    linked_commit text, heading_path text[], start_line integer, end_line integer, event_id text,
    last_event_id text, speaker text, occurred_at timestamptz, content text)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
begin
    return query
    select k.id, p.slug, p.location, p.web_url, d.scope, d.kind, d.name, d.source, d.title, d.commit,
           d.directory, d.branch, linked.id, k.heading_path, k.start_line, k.end_line, k.event_id,
           k.last_event_id, k.speaker, k.occurred_at, k.content
    from chunks k
    join documents d on d.id = k.document_id
    join projects p on p.id = k.project_id
    left join lateral (
        -- The last one of the session's branch before the turn.
        select c.id from project_commits c
        where c.project_id = k.project_id and c.branch = d.branch and c.committed_at <= k.occurred_at
        order by c.committed_at desc, c.id
        limit 1
    ) linked on d.kind = 'session'
    where k.id = any(reader_passages.chunks) and p.tenant_id = tenant;
end
$$;

-- The decision records that passages belong to, and those that replaced them.
create function reader_records(chunks bigint[])
returns table (chunk_id bigint, document_id bigint, name text, status text, status_text text,
    decided_on date, newer bigint[], names text[], titles text[])
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
begin
    return query
    with found as materialized (
        select k.id as chunk_id, k.document_id from chunks k
        where k.id = any(reader_records.chunks) and k.tenant_id = tenant
    )
    select f.chunk_id, d.id, d.name, coalesce(r.status, 'unknown'), r.status_text, r.decided_on,
           n.newer, n.names, n.titles
    from found f
    cross join lateral (
        select x.id, x.name, x.scope, x.kind from documents x where x.id = f.document_id limit 1
    ) d
    left join records r on r.document_id = d.id
    cross join lateral (
        select coalesce(array_agg(x.id order by x.name), '{}') as newer,
               coalesce(array_agg(x.name order by x.name), '{}') as names,
               coalesce(array_agg(x.title order by x.name), '{}') as titles
        from successions s join documents x on x.id = s.newer_id
        where s.older_id = d.id and s.tenant_id = tenant
    ) n
    where d.scope = 'adr' and d.kind = 'file';
end
$$;

-- --- setting it up ---------------------------------------------------------------------------

create function reader_functions() returns setof regprocedure
language sql stable
begin atomic
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'concordance'::regnamespace and p.proname ^@ 'reader_' and p.prosecdef
    order by p.oid;
end;

-- The role that readers' functions run as, with what it needs and no more. It is of the whole
-- server, may not log in, and has rights in this database alone.
create function arrange_readers() returns void
language plpgsql as $$
declare
    called   regprocedure;
    held     name;
    member   name;
    login    text;
    vectors  name := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                      where e.extname = 'vector');
begin
    -- One at a time: two that change the same rights fail.
    lock table concordance.tenant_access in share row exclusive mode;
    perform protect_tables();
    if to_regrole('concordance_functions') is null then
        begin
            create role concordance_functions nologin;
        exception when duplicate_object or unique_violation then
            null;  -- another database of this server made it in the same moment
        end;
    end if;
    if exists (select from pg_roles r where r.rolname = 'concordance_functions'
                 and (r.rolcanlogin or r.rolsuper or r.rolbypassrls)) then
        raise insufficient_privilege using
            message = 'the role concordance_functions may log in, or is above row level security';
    end if;
    -- The tables' owner, too, as later migrations replace functions.
    foreach member in array array[current_user, (
        select pg_get_userbyid(c.relowner) from pg_class c where c.oid = 'concordance.tenants'::regclass)]
    loop
        if not pg_has_role(member, 'concordance_functions', 'usage')
           or not pg_has_role(member, 'concordance_functions', 'set') then
            execute format('grant concordance_functions to %I with inherit true, set true', member);
        end if;
    end loop;
    grant usage on schema concordance to concordance_functions;
    if not has_schema_privilege('concordance_functions', vectors, 'usage') then
        execute format('grant usage on schema %I to concordance_functions', vectors);
    end if;
    foreach held in array array['calibrations', 'chunks', 'coverage', 'documents', 'embedding_models',
        'embeddings', 'lexical', 'project_commits', 'project_stats', 'projects', 'records',
        'session_logs', 'successions', 'tenant_access', 'tenants', 'term_stats']
    loop
        execute format('grant select on concordance.%I to concordance_functions', held);
        if not exists (select from pg_policy p where p.polname = 'reader_functions'
                         and p.polrelid = format('concordance.%I', held)::regclass) then
            execute format('create policy reader_functions on concordance.%I for select '
                'to concordance_functions using (true)', held);
        end if;
    end loop;
    grant select on concordance.schema_migrations to concordance_functions;
    for called in select unnest(array['concordance.own_tenant()',
        'concordance.own_projects(integer, integer[])',
        'concordance.own_width(integer, integer)']::regprocedure[])
    loop
        execute format('grant execute on function %s to concordance_functions', called);
    end loop;
    -- To be given a function, a role has to be allowed to make one.
    grant create on schema concordance to concordance_functions;
    for called in select reader_functions() loop
        if (select p.proowner from pg_proc p where p.oid = called)
           <> to_regrole('concordance_functions') then
            execute format('revoke all on function %s from public', called);
            execute format('alter function %s owner to concordance_functions', called);
        end if;
    end loop;
    revoke create on schema concordance from concordance_functions;
    for login in select a.login from tenant_access a join pg_roles r on r.rolname = a.login loop
        perform admit_reader(login);
    end loop;
end
$$;

create function admit_reader(login text) returns void
language plpgsql as $$
declare
    called regprocedure;
begin
    execute format('grant usage on schema concordance to %I', login);
    for called in select reader_functions() loop
        execute format('grant execute on function %s to %I', called, login);
    end loop;
end
$$;

create function dismiss_reader(login text) returns void
language plpgsql as $$
declare
    called regprocedure;
begin
    for called in select reader_functions() loop
        execute format('revoke execute on function %s from %I', called, login);
    end loop;
    execute format('revoke usage on schema concordance from %I', login);
end
$$;

do $$
declare
    called regprocedure;
begin
    for called in select reader_functions()
        union all select unnest(array['protect_tables()', 'arrange_readers()', 'admit_reader(text)',
            'dismiss_reader(text)', 'own_tenant()', 'own_projects(integer, integer[])',
            'own_width(integer, integer)']::regprocedure[])
    loop
        execute format('revoke all on function %s from public', called);
    end loop;
end
$$;

select protect_tables();
