-- Where a passage stands, beside its words: what orders equal finds is read with their scores.

alter table lexical add column document_id bigint, add column ordinal integer;

-- Each row gets a new version, which the text index would have to take up one by one.
drop index lexical_lexemes;
update lexical l
set document_id = k.document_id, ordinal = k.ordinal
from chunks k
where k.id = l.chunk_id;
alter table lexical alter column document_id set not null, alter column ordinal set not null;
create index lexical_lexemes on lexical using gin (lexemes);
