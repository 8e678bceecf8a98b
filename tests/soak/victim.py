"""A run in a process of its own, which may be killed at any point of it.

    python -m tests.soak.victim FOLDER

waits for orders, one JSON line each, and forks for each of them: a fork is there at once, while an
interpreter takes a second to load the program. The rules of the scanner for keys are compiled in
the folder; without one, there is no such scanner.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from concordance import embedding, resources, writing
from concordance.adapters import ollama, secret_scanner
from concordance.adapters.postgres import database
from concordance.errors import ConcordanceError
from concordance.index import Index
from concordance.models import Scope, ScopeCoverage
from concordance.settings import ALL_SCOPES, Configuration, Project, Settings
from tests.soak.points import Kill, Points
from tests.soak.rules import Rules
from tests.soak.running import AT_ONCE, run_all
from tests.soak.troubles import TIMEOUT_SECONDS

# Small, so that a run of a small project has many transactions and requests.
CLAIM_TEXTS = 2
BATCH_TEXTS = 1
BATCH_DOCUMENTS = 2
WAIT_SECONDS = 4
IN_FLIGHT = AT_ONCE * 2 * CLAIM_TEXTS
"""Texts that a killed run may have embedded for nothing: a worker embeds one claim while it stores
the one before."""

LOCK_SECONDS = 30


@dataclass(frozen=True)
class Order:
    """One run: where, over which projects, by which rules, and who is killed in it.

    `database_url` is empty for the embedded server of `home`; `asked` is when it was ordered, by
    the monotonic clock of the machine.
    """

    home: str
    provider: str
    projects: Sequence[dict[str, Any]]
    rules: dict[str, Any]
    answer: str
    database_url: str = ""
    forget: bool = False
    small: bool = True
    full: bool = False
    scopes: Sequence[str] = ALL_SCOPES
    kill: dict[str, Any] | None = None
    data: str = ""
    asked: float = 0.0


@dataclass
class Told:
    """What a run came to, as it tells it itself."""

    started: float = 0.0
    errors: list[str] = field(default_factory=list)
    passed: dict[str, int] = field(default_factory=dict)
    struck: bool = False
    coverage: list[dict[str, Any]] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    crash: str = ""

    def scopes(self, slug: str) -> list[ScopeCoverage]:
        """The coverage of a project."""
        found = [ScopeCoverage.model_validate(one) for one in self.coverage]
        return [one for one in found if one.project == slug]


def configuration(order: Order) -> Configuration:
    """Settings and projects as an order has them."""
    rules = Rules(**order.rules)
    settings = Settings(
        home=Path(order.home),
        database_url=SecretStr(order.database_url) if order.database_url else None,
        database_pool=8,
        embedding_model=f"ollama/{rules.model}",
        embedding_timeout_seconds=TIMEOUT_SECONDS,
        embedding_attempts=100,
        ollama_url=order.provider,
        allowed_schemes=("file",),
        git_timeout_seconds=30,
        project_lock_seconds=LOCK_SECONDS,
    )
    projects = tuple(Project.model_validate(one) for one in order.projects)
    return Configuration(settings=settings, projects=projects)


def obey(order: Order) -> Told:
    """Make the run of an order in this process."""
    told = Told()
    kill = None if order.kill is None else Kill(**order.kill)
    points = Points(kill, Path(order.data) if order.data else None)
    points.install()
    if order.small:
        _make_small()
    slugs = [str(one["slug"]) for one in order.projects]
    scopes = [Scope(name) for name in order.scopes]
    try:
        with Rules(**order.rules).in_force(), _opened(order) as index:
            _note_first_hold(index, told, order.asked)
            if order.forget:
                for slug in slugs:
                    index.forget(slug)
            failed = run_all(index, slugs, scopes=scopes, full=order.full)
            told.errors = [f"{type(error).__name__}: {error}" for error in failed]
            told.started = told.started or time.monotonic() - order.asked
            told.coverage = [c.model_dump(mode="json") for c in index.coverage(slugs)]
            if kill is None and not failed:
                told.needs = [found.action for found in index.survey(slugs)]
    except ConcordanceError as error:
        told.errors.append(f"{type(error).__name__}: {error}")
    except BaseException:  # noqa: BLE001 - a finding, whatever it is
        told.crash = traceback.format_exc()
    told.passed, told.struck = dict(points.passed), points.struck
    return told


def _make_small() -> None:
    for module, name, value in (
        (embedding, "CLAIM_TEXTS", CLAIM_TEXTS),
        (ollama, "BATCH_TEXTS", BATCH_TEXTS),
        (writing, "BATCH_DOCUMENTS", BATCH_DOCUMENTS),
        # A Postgres that was killed comes back with the next run alone.
        (database, "WAIT_SECONDS", WAIT_SECONDS),
    ):
        setattr(module, name, value)


@contextmanager
def _opened(order: Order) -> Iterator[Index]:
    environment = {"PATH": os.environ["PATH"]}
    with Index.open(configuration(order), environment=environment) as index:
        yield index


def _note_first_hold(index: Index, told: Told, asked: float) -> None:
    """Have the index tell how long it took until a project was held."""
    hold = index.hold

    @contextmanager
    def noted(*arguments: Any, **named: Any) -> Iterator[Any]:
        with hold(*arguments, **named) as held:
            told.started = told.started or time.monotonic() - asked
            yield held

    setattr(index, "hold", noted)  # noqa: B010 - mypy knows what it is


def main() -> None:
    """Fork for each order; say which process has it, and then how that one ended."""
    _prepare_scanner(sys.argv[1])
    for line in sys.stdin:
        order = Order(**json.loads(line))
        process = os.fork()
        if process == 0:
            _child(order)
        _say({"process": process})
        _, status = os.waitpid(process, 0)
        _say({"code": os.waitstatus_to_exitcode(status)})


def _prepare_scanner(folder: str) -> None:
    if folder:
        secret_scanner._scanner(Path(folder) / "secret-rules")
    else:
        setattr(resources, "kingfisher", lambda _: lambda _: [])  # noqa: B010 - for mypy


def _say(what: dict[str, int]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _child(order: Order) -> None:
    code = 1
    try:
        told = obey(order)
        draft = Path(f"{order.answer}.new")
        draft.write_text(json.dumps(asdict(told)), encoding="utf-8")
        draft.rename(order.answer)
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
