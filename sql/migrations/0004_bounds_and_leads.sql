-- Words that share a dimension of the sparse vector are looked for with each question: a bound that
-- holds for one of them says nothing of their sum, so such a question scores every match.
create index term_stats_dimension on term_stats (lexeme_dimension(lexeme), language, project_id);

-- They were fitted to another lead than the one that confidence looks at now.
delete from calibrations;

-- Rows of up to a page stay as they are: taking them apart cost a third of the time of a search.
alter table lexical set (toast_tuple_target = 8160);
