"""One history of several projects whose runs are killed, and what has to hold after each kill.

What belongs here: the order of things, all of it decided by the seed. What is checked is in
`comparing` and `observing`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType

import psycopg

from concordance.adapters.embedding import open_embedder
from concordance.adapters.git_history import HistoryMirror
from concordance.adapters.git_policy import GitPolicy
from concordance.adapters.ollama import PROBE
from concordance.adapters.postgres.database import Database
from concordance.models import Scope
from concordance.resources import Resources
from tests.fake_ollama import FakeOllama
from tests.soak.comparing import compare, compare_coverage
from tests.soak.histories import History
from tests.soak.observing import NOT_THERE, Observer
from tests.soak.points import VICTIMS, Kill, Trigger
from tests.soak.rules import Rules
from tests.soak.sites import Ran, Site
from tests.soak.tallies import Difference, Tally
from tests.soak.troubles import DIES, Troubles
from tests.soak.victim import IN_FLIGHT, Order, configuration

SLUGS = ("p", "q", "r")
START_SECONDS = 20.0
"""How soon a run after a kill has to hold its first project."""

DELAYS = (0.0, 0.0, 0.001, 0.005, 0.02)
TRIGGERS: tuple[Trigger, ...] = ("statement", "statement", "statement", "request", "git")
# How many points the first run has, before one was counted.
FIRST = MappingProxyType({"statement": 400, "request": 60, "git": 30})
# How much of the last estimate stays where a run had less to do.
KEPT = 0.8


@dataclass
class Episode:
    """One step: sources that changed, and the runs until they are indexed."""

    order: Order
    kills: int = 0
    trouble: bool = False


class KillHistory:
    """Steps of several projects; each ends with all rows as a fresh index has them.

    With `kills`, those happen in each step instead of what the seed decides.
    """

    def __init__(
        self,
        site: Site,
        number: int,
        tally: Tally,
        kills: Sequence[Sequence[Kill]] = (),
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self._site = site
        self._given = kills
        self._tell = tell
        self._number = number
        self._tally = tally
        self._dice = random.Random(f"{tally.seed}/{number}")  # noqa: S311 - chance, no secret
        self._rules = Rules()
        self._troubles = Troubles(site.provider)
        self._passed: Counter[str] = Counter(FIRST)
        self._step = 0
        self._projects: list[History] = []

    def run(self, steps: int, until: Callable[[], bool] = lambda: False) -> None:
        """Make a history of so many steps, or until there is no more time."""
        self._troubles.cure()
        sources = self._site.reset(migrated=self._dice.random() < 0.8)
        self._projects = [
            History(sources, f"{self._tally.seed}/{self._number}", slug) for slug in SLUGS
        ]
        for self._step in range(1, steps + 1):
            if self._step > 1 and until():
                break
            self._one_step()
            self._tell()
        self._tally.faults.update(self._troubles.done)
        self._tally.histories += 1

    # --- a step ------------------------------------------------------------------------------

    def _one_step(self) -> None:
        self._tally.steps += 1
        self._move()
        self._rules.serve(self._site.provider)
        self._rules.serve(self._site.healthy)
        projects = [
            history.project(self._rules).model_dump(mode="json") for history in self._projects
        ]
        episode = Episode(self._site.order(projects, self._rules.as_json()))
        self._site.provider.forget()
        with self._rules.in_force(), self._resources(episode.order) as resources:
            if self._given:
                for kill in self._given[self._step - 1]:
                    self._kill(kill, episode, resources)
            else:
                for _ in range(self._dice.choice((1, 1, 1, 2, 3))):
                    self._hurt(episode, resources)
            self._troubles.cure()
            ran = self._run(episode.order, resources)
            self._check_end(episode, ran)
            if ran.told is None or self._found_late(ran):
                return
            self._compare(episode.order, ran)

    def _move(self) -> None:
        for history in self._projects:
            for _ in range(self._dice.choice((1, 1, 2, 3, 5))):
                self._tally.moves[history.step()] += 1
        if self._dice.random() < 0.3:
            name, self._rules = self._rules.changed(self._dice)
            self._tally.moves[f"rules: {name}"] += 1

    def _hurt(self, episode: Episode, resources: Resources) -> None:
        """A run that something is done to: a kill, or faults of the provider."""
        if self._dice.random() < 0.35:
            episode.trouble |= self._troubles.cause(self._dice, well=0.1) is not None
            few = self._dice.sample(list(Scope), k=self._dice.choice((1, 2, 3, 3)))
            full = self._dice.random() < 0.2
            order = replace(episode.order, scopes=sorted(few), full=full)
            ran = self._run(order, resources)
            if ran.told is not None and ran.told.errors:
                self._differ(f"a run whose provider fails ended with {ran.told.errors}")
            self._troubles.cure()
            self._look(resources, "after a run under fault")
            return
        self._kill(self._choose(), episode, resources)

    def _kill(self, kill: Kill, episode: Episode, resources: Resources) -> None:
        if kill.victim == "provider":
            self._troubles.kill_after(kill.at)
            before = self._troubles.done[DIES]
            self._run(episode.order, resources)
            struck = self._troubles.done[DIES] > before
            self._troubles.cure()
        else:
            ran = self._run(replace(episode.order, kill=asdict(kill)), resources)
            struck = ran.code < 0 if kill.victim == "worker" else bool(ran.told and ran.told.struck)
        if struck:
            self._tally.kills[kill.victim] += 1
            episode.kills += 1
        else:
            self._tally.missed += 1
        if kill.victim != "postmaster":
            self._look(resources, f"after the kill of the {kill.victim}")

    def _choose(self) -> Kill:
        trigger = self._dice.choice(TRIGGERS)
        victim = self._dice.choice(VICTIMS[trigger])
        # One throw, whatever was counted: the same seed goes on alike.
        at = 1 + int(self._dice.random() * self._passed[trigger])
        return Kill(trigger, at, victim, self._dice.choice(DELAYS))

    # --- runs, and what is seen of them ------------------------------------------------------

    def _run(self, order: Order, resources: Resources) -> Ran:
        trees = {history.slug: history.trees for history in self._projects}
        with Observer(resources, self._site.url, lambda: trees) as observer:
            ran = self._site.runner.run(order)
        self._tally.runs += 1
        self._tally.looks += observer.looks
        self._tally.longest_run = max(self._tally.longest_run, ran.seconds)
        for wrong, times in observer.found.items():
            self._differ(f"better than the truth, seen {times} times: {wrong}")
        if ran.late:
            self._differ("a run did not end")
        if ran.told is not None and ran.told.crash:
            self._differ(f"a run ended with an error that is none of ours: {ran.told.crash[-900:]}")
        if ran.told is not None and order.kill is None and ran.told.passed:
            # What a run without a kill passes tells where the next may be killed.
            for trigger, points in ran.told.passed.items():
                self._passed[trigger] = max(points, int(self._passed[trigger] * KEPT))
        return ran

    def _look(self, resources: Resources, when: str) -> None:
        """Look at rest: what a dead run left must not be called complete either."""
        trees = {history.slug: history.trees for history in self._projects}
        observer = Observer(resources, self._site.url, lambda: trees)
        for _ in range(100):
            try:
                found = observer.look()
            except NOT_THERE:
                observer.close()
                # Postgres is recovering, or a first run was killed before it made the tables.
                if not self._recovering():
                    return
                continue
            for wrong in found:
                self._differ(f"better than the truth, {when}: {wrong}")
            self._tally.looks += 1
            observer.close()
            return
        self._differ(f"Postgres was not back {when}")

    def _recovering(self) -> bool:
        try:
            with psycopg.connect(self._site.url, connect_timeout=1) as connection:
                found = connection.execute("select to_regclass('concordance.coverage')").fetchone()
        except psycopg.OperationalError as error:
            missing = "does not exist" in str(error)
            self._site.provider.pause(0.1)
            return not missing
        return found is not None and found[0] is not None

    # --- the end of a step -------------------------------------------------------------------

    def _check_end(self, episode: Episode, ran: Ran) -> None:
        """The run after all kills: it starts soon, ends well, and makes no vector twice."""
        if ran.code != 0 or ran.told is None:
            self._differ(f"the run after the kills ended with {ran.code}")
            return
        told = ran.told
        if told.errors:
            self._differ(f"the run after the kills ended with {told.errors}")
        if episode.kills:
            self._tally.started(told.started, f"history {self._number}, step {self._step}")
            if told.started > START_SECONDS:
                self._differ(f"the run after the kills started after {told.started:.1f} s")
        if set(told.needs) - {"none"}:
            self._differ(f"after a run that ended well there is still to do: {told.needs}")
        again = embedded_again(self._site.provider)
        self._tally.embedded += len(self._site.provider.inputs)
        if not episode.trouble:
            self._tally.embedded_again += again
            if again > episode.kills * IN_FLIGHT:
                self._differ(f"{again} texts embedded again after {episode.kills} kills")

    def _found_late(self, ran: Ran) -> bool:
        return ran.late or ran.code != 0 or bool(ran.told and (ran.told.errors or ran.told.crash))

    def _compare(self, order: Order, ran: Ran) -> None:
        fresh = self._site.runner.run(self._site.fresh(order))
        if fresh.told is None or fresh.told.errors or fresh.told.crash:
            self._differ(f"a fresh index could not be built: {fresh}")
            return
        assert ran.told is not None
        for slug in SLUGS:
            done = [
                compare(self._site.url, self._site.fresh_url, slug, whole=True),
                compare_coverage(
                    self._site.url, ran.told.scopes(slug), fresh.told.scopes(slug), whole=True
                ),
            ]
            for one in done:
                self._tally.rows += one.rows
                for found in one.found:
                    self._differ(f"{slug}: {found}")

    def _differ(self, what: str) -> None:
        self._tally.differences.append(Difference(self._number, self._step, what))

    @contextmanager
    def _resources(self, order: Order) -> Iterator[Resources]:
        """What the product computes coverage with; its database is that of each look."""
        given = configuration(order)
        settings = given.settings
        embedder = open_embedder(settings.embedding_model, settings)
        policy = GitPolicy(settings.allowed_schemes, settings.git_timeout_seconds)
        mirror = HistoryMirror(Path(order.home), policy=policy, environment={})
        nowhere = Database(self._site.url, pool_size=1)
        try:
            yield Resources(given, {}, nowhere, 0, mirror, embedder)
        finally:
            embedder.close()


def embedded_again(provider: FakeOllama) -> int:
    """How many texts were sent more often than once, but for those that ask how a server does."""
    counts = Counter(text for text in provider.inputs if text != PROBE)
    return sum(times - 1 for times in counts.values())
