-- Exact BM25 on stock Postgres: one analysis for passages and questions, weights in a sparsevec,
-- and the statistics that idf and threshold queries need.

-- A word without its accents; words of plain ASCII are returned as they are.
create function fold_accents(word text) returns text
language sql immutable parallel safe
return case
    when octet_length(word) = length(word) then word
    else normalize(regexp_replace(normalize(word, nfkd), '[\u0300-\u036f]', '', 'g'), nfc)
end;

-- Text with identifiers, paths and versions taken apart: `getUserById`, `client/server`, `v1.2.3`.
-- Signs that combine with a letter are part of its word; no locale counts all of them as letters.
create function apart(txt text) returns text
language sql immutable parallel safe
return regexp_replace(
    regexp_replace(txt, '([[:lower:][:digit:]])([[:upper:]])', '\1 \2', 'g'),
    '[^[:alnum:]''\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06ed\u0711-\u07f3\u0816-\u08e1\u08e3-\u0963\u0981-\u0df3\u0e31-\u0e4e\u0eb1-\u0ecd\u0f71-\u0f84\u102b-\u103e\u1056-\u109d\u135d-\u135f\u1712-\u17d3\u180b-\u18a9]+',
    ' ', 'g');

-- The same identifiers whole, once each: what is joined by signs, camel case, flags, `C++`, `.env`.
create function whole_identifiers(txt text) returns text[]
language sql immutable parallel safe
return (
    select array_agg(distinct fold_accents(lower(m[1])))
    from regexp_matches(txt,
        '((?:[[:alnum:]_]+(?:(?:::|[-./:@#+])[[:alnum:]_]+)+'
        '|[[:alnum:]]+(?:_+[[:alnum:]]+)+'
        '|[[:lower:]]+[[:upper:]][[:alnum:]]*'
        '|[[:upper:]][[:lower:]]+[[:upper:]][[:alnum:]]*'
        '|[[:alnum:]]+\+\+|[[:alpha:]]#'
        '|(?<![[:alnum:]])--?[[:alpha:]][[:alnum:]-]*'
        '|(?<![[:alnum:]])\.[[:alpha:]][[:alnum:]]*'
        '|::[[:alnum:]]+))', 'g') as m
    where length(m[1]) between 2 and 200 and fold_accents(lower(m[1])) <> ''
);

-- Numbers that are written with leading zeros, without them: `ADR-0012` is asked for as `adr 12`.
create function plain_numbers(txt text) returns text[]
language sql immutable parallel safe
return (
    select array_agg(distinct m[1])
    from regexp_matches(txt, '(?<![[:digit:]])0+([1-9][[:digit:]]{0,17})(?![[:digit:]])', 'g') as m
);

-- Chinese, Japanese and Korean as overlapping pairs of characters, a lone one by itself. Taken apart
-- at once: `substr` counts from the start of a text, which takes long for a long one.
create function character_pairs(txt text) returns text
language sql immutable parallel safe
return (
    select string_agg(coalesce(c.pair, c.letter), ' ' order by c.number, c.place)
    from (
        select x.number, l.place, l.letter,
               l.letter || lead(l.letter) over (partition by x.number order by l.place) as pair
        from regexp_matches(txt,
            '([\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u30ff\u3100-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003134f]+)',
            'g') with ordinality as x (m, number)
        cross join lateral string_to_table(x.m[1], null) with ordinality as l (letter, place)
    ) c
    where c.pair is not null or c.place = 1
);

create function without_cjk(txt text) returns text
language sql immutable parallel safe
return regexp_replace(txt,
    '[\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u30ff\u3100-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003134f]+',
    ' ', 'g');

-- Lexemes without accents, with the places and letters that they had: none gets longer by it, as
-- they are of composed, lower-case text.
create function fold_lexemes(lexemes tsvector) returns tsvector
language sql immutable parallel safe
return (
    select coalesce(string_agg(
        '''' || replace(replace(fold_accents(u.lexeme), '\', '\\'), '''', '''''') || ''''
        || coalesce(':' || (
            select string_agg(p.place::text || w.letter, ',')
            from unnest(u.positions) with ordinality as p (place, n)
            join unnest(u.weights) with ordinality as w (letter, n) using (n)), ''),
        ' '), '')::tsvector
    from unnest(lexemes) as u
    where fold_accents(u.lexeme) <> ''   -- a lone accent leaves nothing
);

-- The one analysis, for passages and questions alike. Procedural, as Postgres starts an executor
-- for each call of an SQL function with a subquery: that took most of the time.
create function text_lexemes(language regconfig, txt text) returns tsvector
language plpgsql immutable parallel safe as $$
declare
    spaced text := txt;
    words  tsvector;
begin
    if octet_length(txt) <> length(txt) then
        -- One form for what is written in several: full width, half width, marks on their own.
        txt := normalize(txt, nfkc);
        spaced := without_cjk(txt);
        -- Lower case first: a letter can have more bytes in it, and the parser leaves out what is
        -- too long for a lexeme by the bytes that it sees.
        words := to_tsvector(language, lower(apart(spaced)));
    else
        words := to_tsvector(language, apart(spaced));
    end if;
    if octet_length(spaced) <> length(spaced) and octet_length(words::text) <> length(words::text) then
        words := fold_lexemes(words);
    end if;
    if spaced ~ '[[:alnum:]][-./:@#+_[:upper:]]|[-.][[:alpha:]]|::' then
        words := words || coalesce(array_to_tsvector(whole_identifiers(spaced)), '');
    end if;
    if spaced ~ '\m0+[1-9]' then
        words := words || coalesce(array_to_tsvector(plain_numbers(spaced)), '');
    end if;
    if spaced <> txt then
        -- More pairs than so do not fit into a tsvector, and no passage has them.
        words := words || to_tsvector('simple', coalesce(character_pairs(left(txt, 50000)), ''));
    end if;
    return words;
end
$$;

-- Where a passage stands and its language, as lexemes: they let the text index look at the searched
-- scopes alone. No word of a text can be taken for one, since words hold no such sign.
create function place_lexemes(language regconfig, project integer, scope text) returns tsvector
language sql stable parallel safe
return array_to_tsvector(array['§' || project || '.' || scope, '§' || language::text]);

-- The words of a passage: headings 'A', path 'C', body 'D'.
drop function passage_lexemes(regconfig, text, text, text[], text);
create function passage_lexemes(
    language regconfig, project integer, scope text, path text, title text, heading_path text[],
    content text
) returns tsvector
language plpgsql stable parallel safe as $$
begin
    return setweight(text_lexemes(language, concat_ws(' ',
            case when title is distinct from heading_path[1] then title end,
            array_to_string(heading_path, ' '))), 'A')
        || setweight(text_lexemes(language, coalesce(path, '')), 'C')
        || text_lexemes(language, content)
        || place_lexemes(language, project, scope);
end
$$;

-- The place of a word in the sparse vector: md5, since hash functions change with the server.
create function lexeme_dimension(lexeme text) returns integer
language sql immutable parallel safe
return (('x' || substr(md5(lexeme), 1, 8))::bit(32)::bigint % 1000000000 + 1)::integer;

-- How often each word stands in a passage; a word of a heading counts twice.
create function lexeme_counts(lexemes tsvector)
returns table (lexeme text, occurrences real)
language sql immutable parallel safe
begin atomic
    select u.lexeme,
           (coalesce(cardinality(u.positions), 1)
            + coalesce(cardinality(array_positions(u.weights, 'A')), 0))::real
    from unnest(lexemes) as u
    where left(u.lexeme, 1) <> '§';
end;

create function passage_length(lexemes tsvector) returns real
language sql immutable parallel safe
return (select coalesce(sum(c.occurrences), 0)::real from lexeme_counts(lexemes) as c);

-- Robertson and Zaragoza 2009, section 3.4, with k1 = 1.2 and b = 0.75.
create function bm25_weight(occurrences real, length real, average real) returns real
language sql immutable parallel safe
return (occurrences * 2.2 / (occurrences + 1.2 * (0.25 + 0.75 * length / average)))::real;

-- Two words of one passage can share a dimension: their weights are summed.
create function bm25_weights(lexemes tsvector, length real, average real) returns sparsevec
language sql immutable parallel safe
return (
    select ('{' || coalesce(string_agg(d.dimension || ':' || d.weight, ',' order by d.dimension), '')
            || '}/1000000000')::sparsevec
    from (
        select lexeme_dimension(c.lexeme) as dimension,
               sum(bm25_weight(c.occurrences, length, average)) as weight
        from lexeme_counts(lexemes) as c
        group by 1
    ) as d
);

-- An average length on a grid of quarters, so that small changes of a project move no weight.
create function grid_length(average double precision) returns real
language sql immutable parallel safe
return (case when average > 0 then power(2, round((log(2, average::numeric) * 3)::numeric) / 3) else 1 end)::real;

alter table documents add column language text;   -- that its passages were analysed in

drop index lexical_lexemes;
-- The planner, before it has statistics, prefers this one to the words; places are lexemes now.
drop index lexical_scope;
delete from lexical;   -- the next run analyses every passage anew: the fingerprint has changed
alter table lexical
    add column language text not null,
    add column length real not null,
    add column weights sparsevec not null;
-- Short lists, kept in the row: a passage that is scored costs one page.
alter table lexical alter column lexemes set storage main, alter column weights set storage main;
create index lexical_lexemes on lexical using gin (lexemes);

-- Which passages hold a word, counted; and the largest weight that it has in any, or more.
create table term_stats (
    language   text not null,
    lexeme     text not null,
    project_id integer not null references projects on delete cascade,
    passages   integer not null,
    largest    real not null,
    primary key (language, lexeme, project_id)
);
create index term_stats_project on term_stats (project_id);

create table project_stats (
    project_id integer not null references projects on delete cascade,
    language   text not null,
    passages   integer not null,
    length     double precision not null,   -- of all of them together
    average    real not null,               -- that the stored weights were made with
    primary key (project_id, language)
);

drop function question_terms(regconfig, text, integer);

-- Until that run nothing may be called complete.
update coverage
set attempt_open = true, state = 'stale', reason = 'its words are analysed anew by the next run'
where chunks > 0;
