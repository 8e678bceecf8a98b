"""Which files in a folder of decisions are decision records: those that have the form of one.

What belongs here: reading files whose form is not known yet. What a form is, is decided in
`concordance.text.record_forms`; the folders, in `concordance.indexing.scopes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from concordance.indexing.plan import Found, Stored
from concordance.models import Scope
from concordance.resources import Resources
from concordance.settings import Project
from concordance.surveying import row_fingerprint
from concordance.text.decoding import Unreadable, decode
from concordance.text.formats import parse
from concordance.text.record_forms import form_of, is_front_page, is_record
from concordance.text.records import read_record


def settle_scopes(
    resources: Resources, project: Project, listed: Sequence[Found], stored: Sequence[Stored]
) -> list[Found]:
    """The same files; those in a folder of decisions that are no records belong to `docs`.

    A record that is stored as such, with the same content, is not read again.
    """
    made_by = row_fingerprint(project)
    known = {
        (s.name, s.content_id) for s in stored if s.scope is Scope.ADR and s.chunker == made_by
    }
    open_questions = [
        f
        for f in listed
        if f.scope is Scope.ADR and f.skip is None and (f.name, f.content_id) not in known
    ]
    if not open_questions:
        return list(listed)
    blobs = resources.mirror.read_blobs(project.slug, [f.content_id for f in open_questions])
    others = {
        found.name
        for found, (_, data) in zip(open_questions, blobs, strict=True)
        if not reads_as_record(found.name, data)
    }
    return [replace(f, scope=Scope.DOCS) if f.name in others else f for f in listed]


def reads_as_record(name: str, data: bytes) -> bool:
    """Whether a file in a folder of decisions is a record; one that can't be read counts as one."""
    source = decode(data)
    if isinstance(source, Unreadable):
        return True
    document = parse(name, source.text)
    form = form_of(source.text, document, read_record(source.text, document))
    return is_record(form, front_page=is_front_page(name))
