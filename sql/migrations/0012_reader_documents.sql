-- What a reader may ask of one document: what is stored of it, and its passages around some lines or
-- around a turn. A citation is looked up by it.

-- A file or a session by its name. How many passages the model refused is not told: the texts that
-- wait stand in a table of the whole tenant that readers' functions don't read.
create function reader_document(project text, kind text, name text)
returns table (id bigint, scope text, status text, reason text, commit text, chunks bigint,
    chunks_with_vector bigint, last_line integer)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
begin
    return query
    select d.id, d.scope, d.status, d.reason, d.commit, count(k.id), count(e.chunk_id), max(k.end_line)
    from projects p
    join documents d on d.project_id = p.id
    left join chunks k on k.document_id = d.id
    left join embedding_models m on m.tenant_id = tenant and m.state = 'active'
    left join embeddings e on e.chunk_id = k.id and e.model_id = m.id and e.content_hash = k.content_hash
    where p.tenant_id = tenant and p.slug = reader_document.project
      and d.kind = reader_document.kind and d.name = reader_document.name
    group by d.id;
end
$$;

-- The passages of a file that hold something of some lines or of those around them, nearest first.
create function reader_lines(project text, name text, first integer, last integer, around integer,
    most integer)
returns table (chunk_id bigint, start_line integer, start_char integer, end_char integer)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
begin
    return query
    select k.id, k.start_line, k.start_char, k.end_char
    from projects p
    join documents d on d.project_id = p.id and d.kind = 'file' and d.name = reader_lines.name
    join chunks k on k.document_id = d.id
    where p.tenant_id = tenant and p.slug = reader_lines.project
      and k.end_line >= reader_lines.first - reader_lines.around
      and k.start_line <= reader_lines.last + reader_lines.around
    order by greatest(reader_lines.first - k.end_line, k.start_line - reader_lines.last, 0), k.ordinal
    limit reader_lines.most;
end
$$;

-- The passages of the turn that begins with an event, and of so many turns before and after it. A long
-- turn has several; `turn` is 0 for the one that was asked for.
create function reader_turns(project text, name text, event text, around integer, most integer)
returns table (chunk_id bigint, turn bigint, start_char integer, end_char integer)
language plpgsql stable security definer
set search_path from current set client_min_messages = error set row_security = on as $$
#variable_conflict use_column
declare
    tenant integer := own_tenant();
begin
    return query
    with parts as materialized (
        select k.id, k.ordinal, k.event_id, k.start_char, k.end_char,
               k.event_id is distinct from lag(k.event_id) over (order by k.ordinal) as begins
        from projects p
        join documents d on d.project_id = p.id and d.kind = 'session' and d.name = reader_turns.name
        join chunks k on k.document_id = d.id
        where p.tenant_id = tenant and p.slug = reader_turns.project
    ), turns as materialized (
        select p.id, p.ordinal, p.event_id, p.start_char, p.end_char,
               count(*) filter (where p.begins) over (order by p.ordinal) as number
        from parts p
    ), asked as (
        select min(t.number) as number from turns t where t.event_id = reader_turns.event
    )
    select t.id, t.number - a.number, t.start_char, t.end_char
    from turns t cross join asked a
    where t.number between a.number - reader_turns.around and a.number + reader_turns.around
    order by abs(t.number - a.number), t.ordinal
    limit reader_turns.most;
end
$$;

revoke all on function reader_document(text, text, text) from public;
revoke all on function reader_lines(text, text, integer, integer, integer, integer) from public;
revoke all on function reader_turns(text, text, text, integer, integer) from public;

-- Where nobody reads yet, the role that they run as need not be there.
do $$
begin
    if exists (select from tenant_access) then
        perform arrange_readers();
    end if;
end
$$;
