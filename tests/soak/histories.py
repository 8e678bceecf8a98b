"""Sources that change by chance, in ways that their seed alone decides.

What belongs here: a repository with session logs, and all that may happen to them. Nothing of the
index is known here, but for what a project's settings have to name.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from concordance.settings import Project, ScopeRules, SessionSource
from tests.soak.rules import Rules
from tests.sources import GitSource, event, write_log

WORDS = ["tea", "kettle", "queue", "walrus", "retry", "brew", "water", "clone"]
NAMES = [
    "README.md",
    "docs/README.md",
    "docs/a.md",
    "docs/b.md",
    "docs/adr/1.md",
    "docs/adr/2.md",
    "docs/adr/README.md",
    "docs/notes.rst",
    "docs/sub/c.md",
    "src/x.md",
]
SESSIONS = ["s", "t"]
DECISION = "# {0}. Use {1}\n\nStatus: {2}\n\nDate: 2026-01-0{0}\n\n## Decision\n\nWe use {1}.\n"
STATES = ["proposed", "accepted", "superseded by [2](2.md)", "superseded by ADR 1"]


class History:
    """A project whose repository and logs change by chance.

    Attributes:
        branch: The branch that the project's settings name; None for the repository's own.
        trees: Of each commit that there ever was, the blob of each path.
    """

    def __init__(self, folder: Path, seed: int | str, slug: str = "p") -> None:
        self.slug = slug
        self.dice = random.Random(f"{seed}/{slug}")  # noqa: S311 - chance, no secret
        self.source = GitSource.make(folder / slug, {"docs/a.md": "# Start\n\ntea\n"})
        self.logs = folder / f"{slug}-logs"
        self.logs.mkdir()
        self.branch: str | None = None
        self.branches = 0
        self.turns = dict.fromkeys(SESSIONS, 0)
        self.said = 0
        self.trees: dict[str, dict[str, str]] = {}
        self.grow_log()
        self._note_tree()

    def project(self, rules: Rules) -> Project:
        """The project as its settings name it now."""
        docs = ("docs/", "src/") if rules.with_sources else ("docs/",)
        return Project(
            slug=self.slug,
            path=self.source.path,
            branch=self.branch,
            language=rules.language,
            scrub=rules.scrub,
            scopes=ScopeRules(docs=docs),
            sessions=(SessionSource(path=self.logs, subagents=rules.subagents),),
        )

    def step(self) -> str:
        """Let something happen; the name of what it was."""
        moves: list[Callable[[], None]] = [
            self.change,
            self.change,
            self.rename,
            self.delete,
            self.go_back,
            self.rewrite,
            self.amend,
            self.move_branch,
            self.name_branch,
            self.grow_log,
            self.rewind_log,
            self.delete_log,
            self.half_a_line,
        ]
        move = self.dice.choice(moves)
        move()
        self._note_tree()
        return move.__name__

    # --- files -------------------------------------------------------------------------------

    def change(self) -> None:
        """Write some files, new or old."""
        chosen = self.dice.sample(NAMES, k=self.dice.randrange(1, 4))
        self.source.commit({name: self._text(name) for name in chosen})

    def rename(self) -> None:
        """Move a file to a name that is free, perhaps with another text."""
        # No Markdown becomes what is none: the same words without their title would be embedded
        # once more, and count as embedded twice.
        present = self._present()
        free = [name for name in NAMES if name not in present and name.endswith(".md")]
        if free and present:
            target = self.source.path / self.dice.choice(free)
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.source.path / self.dice.choice(present)).rename(target)
            if self.dice.random() < 0.2:
                with target.open("ab") as file:
                    file.write(f"\n{self.dice.choice(WORDS)}\n".encode())
        self.source.commit({})

    def delete(self) -> None:
        """Remove a file; one at least is left."""
        if len(self._present()) > 1:
            self.source.commit({}, delete=[self.dice.choice(self._present())])

    # --- history -----------------------------------------------------------------------------

    def go_back(self) -> None:
        """Drop the newest commit."""
        if self._commits() > 1:
            self.source.git("reset", "-q", "--hard", "HEAD~1")

    def rewrite(self) -> None:
        """Drop the newest commit, and make another one in its place."""
        self.go_back()
        self.change()

    def amend(self) -> None:
        """Give the newest commit another message, and so another name."""
        self.source.git("commit", "-q", "--amend", "--allow-empty", "-m", f"m{self.said}")
        self.said += 1

    def move_branch(self) -> None:
        """Rename the branch, which the settings follow where they name it."""
        self.branches += 1
        name = f"trunk-{self.branches}"
        self.source.git("branch", "-m", name)
        if self.branch is not None:
            self.branch = name

    def name_branch(self) -> None:
        """Name the branch in the settings, or leave it to the repository."""
        if self.branch is None:
            self.branch = self.source.git("symbolic-ref", "--short", "HEAD")
        else:
            self.branch = None

    # --- session logs ------------------------------------------------------------------------

    def grow_log(self) -> None:
        """Say something more in a session."""
        session = self.dice.choice(SESSIONS)
        self.turns[session] += self.dice.randrange(1, 4)
        self._write_log(session)

    def rewind_log(self) -> None:
        """Take the last turns of a session back."""
        session = self.dice.choice(SESSIONS)
        self.turns[session] = self.dice.randrange(0, self.turns[session] + 1)
        self._write_log(session)

    def delete_log(self) -> None:
        """Remove a session's log."""
        session = self.dice.choice(SESSIONS)
        self.turns[session] = 0
        (self.logs / f"{session}.jsonl").unlink(missing_ok=True)

    def half_a_line(self) -> None:
        """Write a turn that is not over yet; the next turn makes the line whole."""
        session = self.dice.choice(SESSIONS)
        path = self._write_log(session)
        line = json.dumps(self._turn(session, self.turns[session]))
        with path.open("a", encoding="utf-8") as file:
            file.write(line[: self.dice.randrange(1, len(line))])

    # --- what it is made of ------------------------------------------------------------------

    def _text(self, name: str) -> str | bytes:
        odd = self.dice.random()
        if odd < 0.1:
            return b"# Bad\n\n\xff\xfe\0\n" if odd < 0.05 else ""
        if name.startswith("docs/adr/") and odd < 0.6:
            number = name.removeprefix("docs/adr/").removesuffix(".md")
            given = (number if number.isdigit() else "3", self.dice.choice(WORDS))
            return DECISION.format(*given, self.dice.choice(STATES))
        parts = [
            f"## {self.dice.choice(WORDS)}\n\n{' '.join(self.dice.choices(WORDS, k=12))}.\n"
            for _ in range(self.dice.randrange(5))
        ]
        text = f"# {self.dice.choice(WORDS)}\n\n" + "\n".join(parts)
        # There it is no title: the same words under another hash would count as embedded twice.
        return text.replace("#", "") if name.endswith(".rst") else text

    def _turn(self, session: str, number: int) -> dict[str, object]:
        word = WORDS[(number * 3 + len(self.slug)) % len(WORDS)]
        return event(f"{self.slug}-{session}", number, f"turn {number} {word}")

    def _write_log(self, session: str) -> Path:
        turns = [self._turn(session, number) for number in range(self.turns[session])]
        return write_log(self.logs / f"{session}.jsonl", turns)

    def _present(self) -> list[str]:
        return [name for name in NAMES if (self.source.path / name).exists()]

    def _commits(self) -> int:
        return int(self.source.git("rev-list", "--count", "HEAD"))

    def _note_tree(self) -> None:
        listed = self.source.git("ls-tree", "-r", "HEAD").splitlines()
        tree = {line.partition("\t")[2]: line.split()[2] for line in listed}
        self.trees[self.source.git("rev-parse", "HEAD")] = tree
