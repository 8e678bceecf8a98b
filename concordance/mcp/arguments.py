"""What each tool takes, as a language model reads it: short, with bounds.

What belongs here: shapes of arguments. What they mean is the front door's matter.
"""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime, Field, model_validator

from concordance.models import MAX_QUERY_CHARACTERS, MAX_TOP_K, AdrStatus, Frozen, Scope
from concordance.quoting import MOST_AROUND


class Arguments(Frozen):
    """Arguments of a tool; one that is null counts as not given."""

    @model_validator(mode="before")
    @classmethod
    def _given(cls, given: object) -> object:
        if isinstance(given, dict):
            return {name: value for name, value in given.items() if value is not None}
        return given


class SearchArguments(Arguments):
    """A question with filters."""

    text: str = Field(
        description="The question in plain words, or an identifier.",
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
    )
    projects: tuple[str, ...] | None = Field(
        default=None, description="Only these project slugs.", min_length=1
    )
    scopes: tuple[Scope, ...] | None = Field(
        default=None,
        description="Only documentation, decision records or session logs.",
        min_length=1,
    )
    path_prefix: str | None = Field(
        default=None, description="Only files whose path starts so.", max_length=4_096
    )
    since: AwareDatetime | None = Field(
        default=None, description="Only session turns from this time on, with its zone."
    )
    adr_status: tuple[AdrStatus, ...] | None = Field(
        default=None, description="Only decision records of these states.", min_length=1
    )
    top_k: int = Field(default=5, description="Most passages.", ge=1, le=MAX_TOP_K)
    threshold: float | None = Field(
        default=None,
        description="Least confidence of a passage; the project's own, or 0.1.",
        ge=0.0,
        le=1.0,
        allow_inf_nan=False,
    )
    characters: int = Field(
        default=500, description="Most characters shown of each passage.", ge=40, le=4_000
    )


class ReadArguments(Arguments):
    """A citation, and how much of what is around it."""

    citation: str = Field(
        description="As search gives it: PROJECT:PATH:1-9@COMMIT or PROJECT:session ID#EVENT. "
        "Without @COMMIT: as stored now.",
        min_length=1,
        max_length=10_000,
    )
    around: int | None = Field(
        default=None,
        description="Lines before and after, 5 by default; of a session turns, 1 by default.",
        ge=0,
        le=MOST_AROUND,
    )
    characters: int = Field(
        default=4_000, description="Most characters shown in all.", ge=200, le=50_000
    )


class CoverageArguments(Arguments):
    """Which projects, and how many entries."""

    projects: tuple[str, ...] | None = Field(
        default=None, description="Only these project slugs.", min_length=1
    )
    limit: int = Field(
        default=20,
        description="Most entries; those that are not complete come first.",
        ge=1,
        le=500,
    )


class ExplainArguments(Arguments):
    """A project and a path in it."""

    project: str = Field(description="Its slug.", min_length=1, max_length=64)
    path: str = Field(
        description="A file's path, a session's id, or a citation.", min_length=1, max_length=4_096
    )


def terse(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema without references, titles and nulls, which a model would only have to read.

    What may be null may be left out.
    """
    return _terse({k: v for k, v in schema.items() if k != "$defs"}, schema.get("$defs", {}))


def _terse(schema: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        named_type = named[schema["$ref"].rpartition("/")[2]]
        if "enum" in named_type:  # what is said of the type says nothing of the field
            named_type = {k: v for k, v in named_type.items() if k != "description"}
        schema = named_type | {k: v for k, v in schema.items() if k != "$ref"}
    if _may_be_null(schema):
        one = next(kind for kind in schema["anyOf"] if kind != {"type": "null"})
        outer = {k: v for k, v in schema.items() if k not in ("anyOf", "default")}
        return _terse(one, named) | _terse(outer, named)
    told = {k: v for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
    for key in ("items", "additionalProperties"):
        if isinstance(told.get(key), dict):
            told[key] = _terse(told[key], named)
    if "properties" in told:
        fields = told["properties"]
        told["properties"] = {name: _terse(field, named) for name, field in fields.items()}
        needed = [n for n in told.get("required", ()) if not _may_be_null(fields[n])]
        told = {k: v for k, v in told.items() if k != "required"} | (
            {"required": needed} if needed else {}
        )
    return told


def _may_be_null(schema: dict[str, Any]) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())
