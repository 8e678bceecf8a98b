"""Which files in folders of decisions are records, from the forms of all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordance.deciding import read_form, records_among
from concordance.text.record_forms import Form


@pytest.mark.parametrize(
    ("form", "front_page", "other"),
    [
        (Form.RECORD, True, True),
        (Form.PLAIN, False, True),
        (Form.INDEX, False, False),
        (Form.TEMPLATE, False, False),
        (Form.OTHER, False, False),
    ],
)
def test_a_front_page_has_to_say_that_it_is_a_record(
    form: Form, *, front_page: bool, other: bool
) -> None:
    assert bool(records_among({"adr/x/README.md": form})) is front_page
    assert bool(records_among({"adr/0001-x.md": form})) is other


def test_beside_a_record_with_a_folder_of_its_own_lie_notes() -> None:
    folder = {"adr/2026-01-05-x/README.md": Form.RECORD, "adr/2026-01-05-x/notes.md": Form.PLAIN}
    assert records_among(folder) == {"adr/2026-01-05-x/README.md"}
    group = {"adr/backend/README.md": Form.PLAIN, "adr/backend/queue.md": Form.PLAIN}
    assert records_among(group) == {"adr/backend/queue.md"}
    both = {"adr/x/README.md": Form.RECORD, "adr/x/0001-y.md": Form.RECORD}
    assert records_among(both) == set(both)


@given(st.binary(max_size=200), st.sampled_from(["a.md", "a.rst", "a.adoc"]))
def test_any_file_has_a_form(data: bytes, name: str) -> None:
    assert read_form(name, data) in Form


def test_a_file_that_cannot_be_read_speaks_for_nothing() -> None:
    assert read_form("a.md", b"\xff\xfe") is Form.PLAIN
    assert read_form("a.md", b"") is Form.PLAIN
