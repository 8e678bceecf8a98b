"""What the forms of the deployments ask for: titles, choices and bounds of their parameters.

What belongs here: types of parameters and their check before a run opens anything. Descriptions
stand in the docstrings of the flows, from which Prefect puts them into the form.

Prefect gives each field its parameter's name as title; what `json_schema_extra` says wins over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from concordance.errors import BadTestSet, UsageError
from concordance.index import Index
from concordance.models import Scope, SearchRequest
from concordance.settings import LANGUAGE, SLUG
from tasks.shared import shared_configuration

MOST_PROJECTS = 10_000


def _field(title: str, *, examples: list[Any] | None = None, **bounds: Any) -> Any:
    extra: dict[str, Any] = {"title": title}
    if examples is not None:
        extra["examples"] = examples
    return Field(json_schema_extra=extra, **bounds)


_Slug = Annotated[str, Field(pattern=f"^{SLUG.pattern}$")]
Projects = Annotated[
    list[_Slug] | None, _field("Projects", examples=[["beacon"]], max_length=MOST_PROJECTS)
]
OneProject = Annotated[
    str, _field("Project", examples=["beacon"], pattern=f"^{SLUG.pattern}$", max_length=64)
]
Scopes = Annotated[list[Scope] | None, _field("Scopes")]
Full = Annotated[bool, _field("Everything anew")]
Embed = Annotated[bool, _field("Make vectors")]
RetryRefused = Annotated[bool, _field("Try refused texts again")]
Question = Annotated[SearchRequest, _field("Question")]
SetFolder = Annotated[Path, _field("Folder of the set", examples=["/srv/sets/beacon"])]
Language = Annotated[str, _field("Language", examples=["auto", "english"], pattern=LANGUAGE)]
Vectors = Annotated[bool, _field("Measure vectors, too")]


@contextmanager
def naming(field: str, kind: type[UsageError] = UsageError) -> Iterator[None]:
    """Have an error of ours in what was asked for begin with the name of the field."""
    try:
        yield
    except kind as error:
        raise type(error)(f"{field}: {error.message}", hint=error.hint) from error


def check_projects(field: str, slugs: Iterable[str]) -> None:
    """Refuse a project that is not configured, before anything is opened or fetched.

    Raises:
        UnknownProject: With the field's name, and what there is.
    """
    configuration = shared_configuration()
    with naming(field):
        for slug in slugs:
            Index.check_slug(configuration, slug)


def check_folder(field: str, folder: Path) -> None:
    """Refuse a folder that is not there, before anything is opened.

    Raises:
        BadTestSet: With the field's name.
    """
    if not folder.is_dir():
        raise BadTestSet(
            f"{field}: there is no folder {folder}", hint="Give one on the worker's machine"
        )
