"""Which files in a folder of decisions are decision records: those that have the form of one.

What belongs here: reading files whose form is not known yet. What a form is, is decided in
`concordance.text.record_forms`; the folders, in `concordance.indexing.scopes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from posixpath import dirname

from concordance.indexing.plan import Found, Stored
from concordance.models import Scope
from concordance.resources import Resources
from concordance.settings import Project
from concordance.surveying import row_fingerprint
from concordance.text.decoding import Unreadable, decode
from concordance.text.formats import parse
from concordance.text.record_forms import Form, form_of, is_front_page
from concordance.text.records import read_record


def settle_scopes(
    resources: Resources, project: Project, listed: Sequence[Found], stored: Sequence[Stored]
) -> list[Found]:
    """The same files; those in a folder of decisions that are no records belong to `docs`.

    A record that is stored as such, with the same content, is not read again, unless a README or
    an index beside it may be the record that the folder is for.
    """
    made_by = row_fingerprint(project)
    known = {
        (s.name, s.content_id) for s in stored if s.scope is Scope.ADR and s.chunker == made_by
    }
    among = [f for f in listed if f.scope is Scope.ADR and f.skip is None]
    shared = {dirname(f.name) for f in among if is_front_page(f.name)}
    unsure = [f for f in among if dirname(f.name) in shared or (f.name, f.content_id) not in known]
    if not unsure:
        return list(listed)
    blobs = resources.mirror.read_blobs(project.slug, [f.content_id for f in unsure])
    forms = {
        found.name: read_form(found.name, data)
        for found, (_, data) in zip(unsure, blobs, strict=True)
    }
    others = forms.keys() - records_among(forms)
    return [replace(f, scope=Scope.DOCS) if f.name in others else f for f in listed]


def read_form(name: str, data: bytes) -> Form:
    """What a file in a folder of decisions looks like; one that can't be read says nothing."""
    source = decode(data)
    if isinstance(source, Unreadable):
        return Form.PLAIN
    document = parse(name, source.text)
    return form_of(source.text, document, read_record(source.text, document))


def records_among(forms: Mapping[str, Form]) -> set[str]:
    """Which of these files are records; what lies beside a record with a folder of its own is none.

    A README or an index, and a file beside one that is a record, has to have the form of a record.
    """
    own = {
        dirname(name) for name, form in forms.items() if is_front_page(name) and form is Form.RECORD
    }
    return {
        name
        for name, form in forms.items()
        if form is Form.RECORD
        or (form is Form.PLAIN and not is_front_page(name) and dirname(name) not in own)
    }
