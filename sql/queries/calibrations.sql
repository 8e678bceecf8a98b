-- Fitted numbers of projects, and the questions that people recorded.

-- name: find
select p.slug as project, c.set_name, c.questions_hash, c.fitted_on, c.checked_on, c.model,
       c.model_name, c.vector_weight, c.threshold, c.confidence, c.figures, c.made_at
from calibrations c join projects p on p.id = c.project_id
where c.project_id = %(project)s

-- name: list
select p.slug as project, c.set_name, c.questions_hash, c.fitted_on, c.checked_on, c.model,
       c.model_name, c.vector_weight, c.threshold, c.confidence, c.figures, c.made_at
from calibrations c
join projects p on p.id = c.project_id
join tenants t on t.id = c.tenant_id
where t.slug = %(slug)s
order by p.slug

-- name: there
-- Whether the schema is new enough to hold any.
select to_regclass('calibrations') is not null

-- name: save
insert into calibrations (project_id, tenant_id, set_name, questions_hash, fitted_on, checked_on,
    model, model_name, vector_weight, threshold, confidence, figures, made_at)
values (%(project)s, %(tenant)s, %(set_name)s, %(questions_hash)s, %(fitted_on)s, %(checked_on)s,
    %(model)s, %(model_name)s, %(vector_weight)s, %(threshold)s, %(confidence)s, %(figures)s,
    %(now)s)
on conflict (project_id) do update
    set (set_name, questions_hash, fitted_on, checked_on, model, model_name, vector_weight,
         threshold, confidence, figures, made_at) = (
        excluded.set_name, excluded.questions_hash, excluded.fitted_on, excluded.checked_on,
        excluded.model, excluded.model_name, excluded.vector_weight, excluded.threshold,
        excluded.confidence, excluded.figures, excluded.made_at)

-- name: remove
delete from calibrations where project_id = %(project)s

-- name: record_question
insert into recorded_questions (tenant_id, project_id, question, kind, name, start_line, end_line,
    event_id, recorded_at)
values (%(tenant)s, %(project)s, %(question)s, %(kind)s, %(name)s, %(start_line)s, %(end_line)s,
    %(event_id)s, %(now)s)
on conflict do nothing

-- name: recorded
select r.id, p.slug as project, r.question, r.kind, r.name, r.start_line, r.end_line, r.event_id,
       r.recorded_at
from recorded_questions r join projects p on p.id = r.project_id
where r.tenant_id = %(tenant)s and (%(project)s::integer is null or r.project_id = %(project)s)
order by p.slug, r.id

-- name: forget_question
delete from recorded_questions where tenant_id = %(tenant)s and id = %(number)s

-- name: passages
select d.kind, d.name, k.ordinal, d.title, k.titled, k.heading_path, k.start_line, k.end_line,
       k.event_id, k.last_event_id, k.content
from chunks k join documents d on d.id = k.document_id
where k.project_id = %(project)s
order by d.kind, d.name, k.ordinal
