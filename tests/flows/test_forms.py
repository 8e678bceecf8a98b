"""The forms of the deployments: they explain themselves, and refuse a wrong value by its name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from prefect import Flow
from prefect.exceptions import ParameterTypeError
from prefect.utilities.callables import parameter_schema_from_entrypoint
from prefect.utilities.schema_tools.validation import ValidationError, validate
from pydantic import SecretStr

from concordance.errors import BadTestSet, UnknownProject
from concordance.settings import Project
from flows.backfill_vectors import backfill_vectors
from flows.evaluate import evaluate
from flows.reindex import reindex
from flows.reindex_project import reindex_project
from flows.search import search
from tasks import shared
from tests.conftest import IndexMaker

ROOT = Path(__file__).parents[2]
FILE = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text(encoding="utf-8"))
ENTRYPOINTS = {d["name"]: d["entrypoint"] for d in FILE["deployments"]}
DEFAULTS = {d["name"]: d.get("parameters", {}) for d in FILE["deployments"]}
# What a schedule, a script or another job may give since the first version.
KNOWN = [
    ("reindex", {}),
    ("reindex", {"projects": None, "scopes": None, "full": False}),
    ("reindex", {"projects": ["a.b-c_d"], "scopes": ["docs", "adr", "session"], "full": True}),
    ("reindex-project", {"project": "a", "scopes": ["docs"], "full": True, "embed": False}),
    ("backfill-vectors", {"projects": ["a"], "retry_refused": True}),
    ("evaluate", {"data": "/srv/sets/a", "language": "german", "vectors": False}),
    ("search", {"request": {"text": "restore", "top_k": 3, "scopes": ["adr"], "projects": ["a"]}}),
    ("search", {"request": {"text": "x", "since": "2026-01-01T00:00:00Z", "threshold": 0.0}}),
]
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("reindex", {"projects": "beacon"}, "projects"),
    ("reindex", {"projects": ["https://x:secret@example.org/a.git"]}, "projects[0]"),
    ("reindex", {"scopes": ["code"]}, "scopes[0]"),
    ("reindex", {"full": "often"}, "full"),
    ("reindex-project", {"project": "Not A Slug"}, "project"),
    ("reindex-project", {"project": "a", "embed": 7}, "embed"),
    ("backfill-vectors", {"retry_refused": "twice"}, "retry_refused"),
    ("evaluate", {"data": "x", "language": "English; drop"}, "language"),
    ("search", {"request": {"text": ""}}, "request.text"),
    ("search", {"request": {"text": "x", "top_k": 0}}, "request.top_k"),
    ("search", {"request": {"text": "x", "top_k": 101}}, "request.top_k"),
    ("search", {"request": {"text": "x", "fusion": "magic"}}, "request.fusion"),
    ("search", {"request": {"text": "x", "threshold": 1.5}}, "request.threshold"),
    ("search", {"request": {"text": "x", "deadline_seconds": 0}}, "request.deadline_seconds"),
]


@pytest.fixture(scope="module")
def schemas() -> dict[str, dict[str, Any]]:
    """What `prefect deploy` stores with each deployment, and the pages make forms of."""
    return {
        name: parameter_schema_from_entrypoint(str(ROOT / entrypoint)).model_dump()
        for name, entrypoint in ENTRYPOINTS.items()
    }


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field that a form shows, those of models within it included."""
    yield from schema["properties"].items()
    for definition in schema["definitions"].values():
        yield from definition.get("properties", {}).items()


@pytest.mark.parametrize("name", sorted(ENTRYPOINTS))
def test_every_field_of_a_form_has_a_title_in_words_and_a_description(
    schemas: dict[str, dict[str, Any]], name: str
) -> None:
    schema = schemas[name]
    found = dict(fields(schema))
    assert found
    for field, shown in found.items():
        titled = shown.get("title") or shown["$ref"].rpartition("/")[2]
        assert titled[0].isupper(), field
        assert "_" not in titled, field
        assert shown["description"].endswith("."), field


def test_choices_are_lists_and_numbers_have_bounds(schemas: dict[str, dict[str, Any]]) -> None:
    assert schemas["reindex"]["definitions"]["Scope"]["enum"] == ["docs", "adr", "session"]
    asked = schemas["search"]["definitions"]
    assert asked["Fusion"]["enum"] == ["convex", "rrf", "weighted", "lexical", "vector"]
    assert set(asked["AdrStatus"]["enum"]) >= {"accepted", "superseded"}
    for field, shown in fields(schemas["search"]):
        for kind in (shown, *shown.get("anyOf", ())):
            if kind.get("type") in ("integer", "number"):
                assert "minimum" in kind or "exclusiveMinimum" in kind, field
                assert "maximum" in kind, field


def test_no_form_asks_for_a_secret(schemas: dict[str, dict[str, Any]]) -> None:
    for name, schema in schemas.items():
        told = json.dumps(schema).lower()
        for word in ("password", "writeonly", "secretstr"):
            assert word not in told, name
        for field, _ in fields(schema):
            parts = set(field.split("_"))
            assert not parts & {"token", "key", "secret", "password", "credential", "url"}, field
    assert "password" in json.dumps(_schema_with_a_secret()), "a secret would be seen"


def _schema_with_a_secret() -> dict[str, Any]:
    from prefect.utilities.callables import parameter_schema  # noqa: PLC0415

    def asks(word: SecretStr) -> None:
        """Ask for it."""

    return parameter_schema(asks).model_dump()


@pytest.mark.parametrize(("name", "parameters"), KNOWN)
def test_what_was_taken_before_is_taken_still(
    schemas: dict[str, dict[str, Any]], name: str, parameters: dict[str, Any]
) -> None:
    validate(DEFAULTS[name] | parameters, schemas[name], raise_on_error=True)


@pytest.mark.parametrize(("name", "parameters", "field"), WRONG)
def test_the_server_refuses_a_wrong_value_by_the_name_of_its_field(
    schemas: dict[str, dict[str, Any]], name: str, parameters: dict[str, Any], field: str
) -> None:
    """The server asks the same function when a run is created, and answers with its words."""
    with pytest.raises(ValidationError, match="Validation failed for field") as caught:
        validate(DEFAULTS[name] | parameters, schemas[name], raise_on_error=True)
    assert f"'{field}'" in str(caught.value)


FLOWS: dict[str, Flow[..., Any]] = {
    "reindex": reindex,
    "reindex-project": reindex_project,
    "backfill-vectors": backfill_vectors,
    "evaluate": evaluate,
    "search": search,
}


@pytest.mark.parametrize(("name", "parameters", "field"), WRONG)
def test_a_run_refuses_it_too_and_does_not_repeat_it(
    name: str, parameters: dict[str, Any], field: str
) -> None:
    if field == "language":
        parameters = {"data": Path("x"), "language": parameters["language"]}
    given = {"vectors": True} if name == "evaluate" else {}
    with pytest.raises(ParameterTypeError) as caught:
        FLOWS[name].validate_parameters(parameters | given)
    told = str(caught.value)
    assert f"- {field.replace('[0]', '.0')}" in told
    assert "secret" not in told


def test_a_project_that_is_not_there_is_refused_before_the_index_is_opened(
    make_index: IndexMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "projects.toml").write_text(
        f'[[projects]]\nslug = "lamp"\npath = "{tmp_path}"\n', encoding="utf-8"
    )
    monkeypatch.setenv("CONCORDANCE_PROJECTS_FILE", str(tmp_path / "projects.toml"))
    monkeypatch.setenv("CONCORDANCE_DATABASE_URL", "postgresql://127.0.0.1:1/nowhere")
    with pytest.raises(UnknownProject, match=r"^projects: there is no project 'typo'.*has: lamp"):
        reindex.fn(projects=["typo"])
    with pytest.raises(UnknownProject, match=r"^project: there is no project 'typo'"):
        reindex_project.fn(project="typo")
    with pytest.raises(UnknownProject, match=r"^projects: there is no project 'typo'"):
        backfill_vectors.fn(projects=["lamp", "typo"])
    with pytest.raises(BadTestSet, match=r"^data: there is no folder"):
        evaluate.fn(tmp_path / "nowhere")


def test_a_question_that_cannot_be_asked_names_the_form_s_field(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    shared.adopt_index(make_index(Project(slug="lamp", path=tmp_path)))
    for request, told in (
        ({"text": "x", "projects": ["typo"]}, "request.projects: there is no project 'typo'"),
        ({"text": "x", "projects": []}, "request: an empty list of projects"),
        ({"text": " "}, "request: the question is blank"),
    ):
        state = search(request, return_state=True)
        assert state.is_failed()
        assert told in (state.message or "")
