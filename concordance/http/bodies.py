"""What requests and responses hold, with the examples that OpenAPI shows.

What belongs here: shapes. A request says by its shape all that is refused: what `SearchRequest`
takes of Python is narrowed to what JSON says.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field, field_validator

from concordance.models import Frozen, Scope, ScopeCoverage, SearchRequest

# What Python calls blank, as JSON Schema and pydantic both read it; NUL is read as a blank.
_NOT_BLANK = r"[^\s\u0000\u001c-\u001f\u0085]"
_NUMBERS = ("top_k", "vector_weight", "threshold", "rrf_k", "deadline_seconds")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)")


def _narrowed(schema: dict[str, Any]) -> None:
    """Say of a request what the search would refuse."""
    fields = schema["properties"]
    fields["text"]["pattern"] = _NOT_BLANK
    fields["path_prefix"]["anyOf"][0]["pattern"] = r"^[^\u0000]*$"
    for name in ("projects", "scopes", "adr_status"):
        fields[name]["anyOf"][0]["minItems"] = 1
    schema["examples"] = [
        {"text": "how is a backup restored?", "scopes": ["docs", "adr"], "top_k": 5},
        {"text": "why was the broker replaced?", "adr_status": ["accepted"]},
    ]


class SearchBody(SearchRequest):
    """One question to the index; all fields but `text` may be left out."""

    model_config = ConfigDict(title="SearchRequest", json_schema_extra=_narrowed)

    @field_validator(*_NUMBERS, mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, str | bool):
            raise ValueError("write a number")  # noqa: TRY004 - pydantic's way
        return value

    @field_validator("rerank", mode="before")
    @classmethod
    def _flag(cls, value: object) -> object:
        if value is not None and not isinstance(value, bool):
            raise ValueError("write true or false")
        return value

    @field_validator("since", mode="before")
    @classmethod
    def _moment(cls, value: object) -> object:
        if value is not None and not (isinstance(value, str) and _TIME.fullmatch(value)):
            raise ValueError("write a time with its zone, such as 2026-01-31T12:00:00Z")
        return value


class CoverageReport(Frozen):
    """What is indexed, by project and scope, and how far it can be trusted."""

    as_of: datetime
    coverage: tuple[ScopeCoverage, ...]


class ReindexBody(Frozen):
    """Which run to start; an empty object means all projects."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{}, {"projects": ["beacon"], "scopes": ["docs"]}]}
    )

    projects: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="Slugs; none given means all that the key reads."
    )
    scopes: tuple[Scope, ...] | None = Field(
        default=None, min_length=1, description="Kinds of source; none given means all."
    )
    full: bool = Field(
        default=False, strict=True, description="Read and write every document anew."
    )


class StartedRun(Frozen):
    """A run that was started, and where it can be watched."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "flow_run_id": "0199c1f0-6f3a-7c1e-9d3c-0d6c5e0f7a11",
                    "name": "amber-heron",
                    "address": "http://prefect.example.org:4200/runs/flow-run/"
                    "0199c1f0-6f3a-7c1e-9d3c-0d6c5e0f7a11",
                }
            ]
        }
    )

    flow_run_id: UUID
    name: str
    address: str | None = Field(description="Its page in the Prefect UI.")


class Health(Frozen):
    """That the process answers; whether the index can be asked is told by a question."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"status": "ok", "version": "0.1.0"}]}
    )

    status: str
    version: str
