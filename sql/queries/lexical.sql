-- Words: the passages that hold them, their weights, and the statistics behind both.

-- name: create_analysed
create temporary table if not exists analysed (
    chunk_id bigint, document_id bigint, ordinal integer, scope text, language text,
    lexemes tsvector, length real
) on commit delete rows

-- name: clear_analysed
-- Two writes may share a transaction.
delete from analysed

-- name: analyse
-- Materialized: no passage is analysed that a later join would leave out.
with passages as materialized (
    select k.id, k.document_id, k.ordinal, k.titled, k.heading_path, k.content, d.project_id, d.scope,
           d.kind, d.name, d.title, d.language
    from documents d join chunks k on k.document_id = d.id
    where d.id = any(%(documents)s) and d.project_id = %(project)s
)
insert into analysed (chunk_id, document_id, ordinal, scope, language, lexemes, length)
select p.id, p.document_id, p.ordinal, p.scope, p.language, w.lexemes, passage_length(w.lexemes)
from passages p
cross join lateral (
    select passage_lexemes(p.language::regconfig, p.project_id, p.scope,
                           case when p.titled and p.kind = 'file' then p.name end,
                           case when p.titled then p.title end, p.heading_path, p.content)
    offset 0
) as w (lexemes)

-- name: analyse_incoming
-- The passages that are being written, before those that they replace are gone.
with passages as materialized (
    select k.id, k.document_id, c.ordinal, k.titled, k.heading_path, k.content, d.project_id, d.scope,
           d.kind, d.name, d.title, d.language
    from incoming_chunks c
    join chunks k on k.id = c.chunk_id
    join documents d on d.id = k.document_id
    where d.project_id = %(project)s
)
insert into analysed (chunk_id, document_id, ordinal, scope, language, lexemes, length)
select p.id, p.document_id, p.ordinal, p.scope, p.language, w.lexemes, passage_length(w.lexemes)
from passages p
cross join lateral (
    select passage_lexemes(p.language::regconfig, p.project_id, p.scope,
                           case when p.titled and p.kind = 'file' then p.name end,
                           case when p.titled then p.title end, p.heading_path, p.content)
    offset 0
) as w (lexemes)

-- name: lock_words
-- Batches of one run are analysed side by side; their words are counted one batch at a time.
select pg_advisory_xact_lock(%(class)s, %(project)s)

-- name: open_stats
-- The first passages of a language settle the average that weights are made with; a run that ends
-- with another one weighs all of them again.
insert into project_stats (project_id, language, passages, length, average)
select %(project)s, a.language, 0, 0, grid_length(avg(a.length))
from analysed a
group by a.language
on conflict (project_id, language) do nothing

-- name: write
with weighed as materialized (
    select a.chunk_id, a.scope, a.language, a.length, c.lexeme,
           bm25_weight(c.occurrences, a.length, s.average) as weight
    from analysed a
    join project_stats s on s.project_id = %(project)s and s.language = a.language
    cross join lateral lexeme_counts(a.lexemes) as c
), terms as (
    insert into term_stats (language, lexeme, project_id, passages, largest)
    select w.language, w.lexeme, %(project)s, count(*), max(w.weight)
    from weighed w
    group by w.language, w.lexeme
    order by w.language, w.lexeme
    on conflict (language, lexeme, project_id) do update
        set passages = term_stats.passages + excluded.passages,
            largest = greatest(term_stats.largest, excluded.largest)
), vectors as (
    select d.chunk_id,
           ('{' || string_agg(d.dimension || ':' || d.weight, ',') || '}/1000000000')::sparsevec
               as weights
    from (
        select w.chunk_id, lexeme_dimension(w.lexeme) as dimension, sum(w.weight) as weight
        from weighed w
        group by w.chunk_id, lexeme_dimension(w.lexeme)
    ) as d
    group by d.chunk_id
)
insert into lexical (chunk_id, tenant_id, project_id, document_id, ordinal, scope, language, lexemes,
    length, weights)
select a.chunk_id, %(tenant)s, %(project)s, a.document_id, a.ordinal, a.scope, a.language, a.lexemes,
       a.length, coalesce(v.weights, '{}/1000000000')
from analysed a left join vectors v using (chunk_id)
order by a.chunk_id

-- name: add_totals
update project_stats s
set passages = s.passages + a.passages, length = s.length + a.length
from (select language, count(*) as passages, sum(length) as length from analysed group by language) a
where s.project_id = %(project)s and s.language = a.language

-- name: forget
-- Before passages change or go: their words are taken out of the statistics, in the same transaction.
with gone as materialized (
    delete from lexical l
    using chunks k
    where k.id = l.chunk_id and k.document_id = any(%(documents)s) and l.project_id = %(project)s
    returning l.language, l.lexemes, l.length
), terms as (
    update term_stats t
    set passages = t.passages - w.passages
    from (
        select g.language, c.lexeme, count(*) as passages
        from gone g cross join lateral lexeme_counts(g.lexemes) as c
        group by g.language, c.lexeme
        order by g.language, c.lexeme
    ) w
    where t.project_id = %(project)s and t.language = w.language and t.lexeme = w.lexeme
)
update project_stats s
set passages = s.passages - w.passages, length = s.length - w.length
from (
    select g.language, count(*) as passages, sum(g.length) as length from gone g group by g.language
) w
where s.project_id = %(project)s and s.language = w.language

-- name: drifted
-- Languages of a project whose passages have another average length than their weights assume.
select s.language, s.passages, grid_length(s.length / s.passages) as average
from project_stats s
where s.project_id = %(project)s and s.passages > 0
  and grid_length(s.length / s.passages) <> s.average
order by s.language

-- name: set_average
update project_stats set average = %(average)s
where project_id = %(project)s and language = %(language)s

-- name: weigh_again
update lexical
set weights = bm25_weights(lexemes, length, %(average)s::real)
where project_id = %(project)s and language = %(language)s

-- name: drop_terms
delete from term_stats
where project_id = %(project)s and (%(language)s::text is null or language = %(language)s)

-- name: rebuild_terms
insert into term_stats (language, lexeme, project_id, passages, largest)
select l.language, c.lexeme, %(project)s, count(*),
       max(bm25_weight(c.occurrences, l.length, s.average))
from lexical l
join project_stats s on s.project_id = l.project_id and s.language = l.language
cross join lateral lexeme_counts(l.lexemes) as c
where l.project_id = %(project)s and (%(language)s::text is null or l.language = %(language)s)
group by l.language, c.lexeme

-- name: sweep
delete from term_stats where project_id = %(project)s and passages <= 0

-- name: sweep_languages
delete from project_stats where project_id = %(project)s and passages <= 0

-- name: tidy_index
-- New entries of the text index wait in a list that every search reads through; only its owner may
-- bring them to their places.
select gin_clean_pending_list(c.oid)
from pg_class c
where c.oid = 'lexical_lexemes'::regclass and pg_has_role(c.relowner, 'usage')

-- name: lock_stats
-- No run writes the project meanwhile.
select id from projects where id = %(project)s for update

-- name: differences
with counted as (
    select l.language, c.lexeme, count(*) as passages,
           max(bm25_weight(c.occurrences, l.length, s.average)) as largest
    from lexical l
    join project_stats s on s.project_id = l.project_id and s.language = l.language
    cross join lateral lexeme_counts(l.lexemes) as c
    where l.project_id = %(project)s
    group by l.language, c.lexeme
), terms as (
    select t.language, t.lexeme, t.passages, t.largest
    from term_stats t where t.project_id = %(project)s and t.passages <> 0
), totals as (
    select l.language, count(*) as passages, sum(l.length::float8) as length
    from lexical l where l.project_id = %(project)s group by l.language
)
select p.slug as project, d.language, d.lexeme, d.stored, d.counted
from (
    select coalesce(c.language, t.language) as language, coalesce(c.lexeme, t.lexeme) as lexeme,
           t.passages::float8 as stored, c.passages::float8 as counted
    from counted c full join terms t using (language, lexeme)
    where t.passages is distinct from c.passages or t.largest < c.largest
    union all
    select coalesce(o.language, s.language), null, s.passages + s.length, o.passages + o.length
    from totals o
    full join (select * from project_stats where project_id = %(project)s and passages <> 0) s
        using (language)
    where (s.passages, s.length) is distinct from (o.passages, o.length)
) d
join projects p on p.id = %(project)s
order by d.language, d.lexeme

-- name: missing_languages
-- An average that no passage has: `drifted` finds it, and the weights are made anew.
insert into project_stats (project_id, language, passages, length, average)
select %(project)s, l.language, 0, 0, 0
from lexical l where l.project_id = %(project)s
group by l.language
on conflict (project_id, language) do nothing

-- name: recount_totals
update project_stats s
set (passages, length) = (
    select count(*), coalesce(sum(l.length::float8), 0)
    from lexical l where l.project_id = s.project_id and l.language = s.language)
where s.project_id = %(project)s

-- name: terms
-- A question's words in each language of the searched projects, with what these know of them; one
-- row without a word where it has none in a language. An aggregate a word: as a join, the planner
-- would read all words of a language. Of a very long question those that stand in it most often are
-- taken, and of these the first; `asked` is how many there are.
select q.language, q.passages, c.lexeme, lexeme_dimension(c.lexeme) as dimension,
       c.occurrences, s.passages_with, s.largest, coalesce(c.asked, 0) as asked,
       exists (
         select from term_stats t
         where lexeme_dimension(t.lexeme) = lexeme_dimension(c.lexeme) and t.lexeme <> c.lexeme
           and t.language = q.language and t.project_id = any(%(projects)s)
       ) as shared
from (
    select s.language, sum(s.passages)::integer as passages
    from project_stats s
    where s.project_id = any(%(projects)s) and s.passages > 0
    group by s.language
) q
left join lateral (
    select u.lexeme, coalesce(cardinality(u.positions), 1) as occurrences, length(a.lexemes) as asked
    from (select text_lexemes(q.language::regconfig, %(question)s) as lexemes offset 0) a
    cross join lateral unnest(a.lexemes) as u
    where left(u.lexeme, 1) <> '§'
    order by occurrences desc, u.positions[1], u.lexeme
    limit %(most)s
) c on true
cross join lateral (
    select coalesce(sum(t.passages), 0)::integer as passages_with,
           coalesce(max(t.largest), 0)::real as largest
    from term_stats t
    where t.language = q.language and t.lexeme = c.lexeme and t.project_id = any(%(projects)s)
) s
order by q.language, c.lexeme

-- name: forms
-- The words of a question by place, in each language: a place without a word is a stop word there.
-- Cut into words as `text_lexemes` does it, and folded after they were stemmed. Pairs of characters,
-- and what is found whole or without its leading zeros, are alike in all languages. Places beyond
-- the last that a tsvector tells apart are left out.
with question as (
    select case when octet_length(t.txt) = length(t.txt) then apart(t.txt)
                else lower(apart(without_cjk(normalize(t.txt, nfkc)))) end as spaced
    from (select %(question)s::text as txt) t
)
select l.language, fold_accents(u.lexeme) as lexeme, u.positions
from unnest(%(languages)s::text[]) as l (language)
cross join lateral (
    select u.lexeme, u.positions
    from question x, unnest(to_tsvector(l.language::regconfig, x.spaced)) as u
    where u.positions[1] < 16383
    order by u.positions[1]
    limit %(most)s
) u
order by l.language, u.positions[1]

-- name: top
-- Cast before the passages are met: within, each of them would read the text of the vector anew.
select f.chunk_id, f.score
from unnest(%(languages)s::text[], %(vectors)s::text[]::sparsevec[],
            %(conditions)s::text[]::tsquery[]) as q (language, vector, condition)
cross join lateral (
    select l.chunk_id, -(l.weights <#> q.vector) as score
    from lexical l
    where l.lexemes @@ q.condition
      and l.language = q.language
      and l.project_id = any(%(projects)s) and l.scope = any(%(scopes)s)
      and (%(narrow)s = false or exists (
        select from chunks k join documents d on d.id = k.document_id
        where k.id = l.chunk_id
          and (%(prefix)s::text is null or (d.kind = 'file' and starts_with(d.name, %(prefix)s)))
          and (%(since)s::timestamptz is null or k.occurred_at >= %(since)s)
          and (%(adr_status)s::text[] is null or has_adr_status(d.id, d.scope, %(adr_status)s))))
    order by score desc, l.chunk_id
    limit %(pool)s
) f
order by f.score desc, f.chunk_id
limit %(pool)s

-- name: top_ts_rank_cd
-- Ranked by the words alone: a place in the condition would count as one of them.
select f.chunk_id, f.score
from unnest(%(languages)s::text[], %(words)s::text[]::tsquery[],
            %(conditions)s::text[]::tsquery[]) as q (language, words, condition)
cross join lateral (
    select l.chunk_id, ts_rank_cd(l.lexemes, q.words)::float8 as score
    from lexical l
    where l.lexemes @@ q.condition
      and l.language = q.language
      and l.project_id = any(%(projects)s) and l.scope = any(%(scopes)s)
      and (%(narrow)s = false or exists (
        select from chunks k join documents d on d.id = k.document_id
        where k.id = l.chunk_id
          and (%(prefix)s::text is null or (d.kind = 'file' and starts_with(d.name, %(prefix)s)))
          and (%(since)s::timestamptz is null or k.occurred_at >= %(since)s)
          and (%(adr_status)s::text[] is null or has_adr_status(d.id, d.scope, %(adr_status)s))))
    order by score desc, l.chunk_id
    limit %(pool)s
) f
order by f.score desc, f.chunk_id
limit %(pool)s
