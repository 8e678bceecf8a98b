"""What a soak did and found, counted; and how it is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not as it should be, with the history and the step where it was seen."""

    history: int
    step: int
    what: str


@dataclass
class Tally:
    """All of one soak."""

    seed: str
    histories: int = 0
    steps: int = 0
    runs: int = 0
    looks: int = 0
    rows: int = 0
    embedded: int = 0
    embedded_again: int = 0
    longest_start: dict[str, tuple[float, str]] = field(default_factory=dict)
    longest_run: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    moves: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def started(self, seconds: float, where: str, how: str = "plain") -> None:
        """Note how long a run after a kill took until it held a project."""
        if seconds > self.longest_start.get(how, (0.0, ""))[0]:
            self.longest_start[how] = (seconds, where)

    def summary(self) -> str:
        """All of it, for a person."""
        again = f"{self.embedded_again:,} of them again, in flight when their run was killed"
        told = {
            "histories": (self.histories, ""),
            "steps": (self.steps, _counted(self.moves)),
            "runs": (self.runs, f"longest {self.longest_run:.1f} s"),
            "kills": (self.kills.total(), _counted(self.kills)),
            "kills too late": (self.missed, "the run was over"),
            "faults injected": (self.faults.total(), _counted(self.faults)),
            "texts embedded": (self.embedded, again),
            "looks in mid-run": (self.looks, ""),
            "rows compared": (self.rows, ""),
            "differences": (len(self.differences), ""),
        }
        lines = [f"{name:<18} {n:>9,}   {more}".rstrip() for name, (n, more) in told.items()]
        lines += [
            f"longest start after a kill, {how}: {seconds:.2f} s ({where})"
            for how, (seconds, where) in sorted(self.longest_start.items())
        ]
        lines += [f"  history {d.history}, step {d.step}: {d.what}" for d in self.differences]
        lines += [
            f"  again: make soak SEED={self.seed} HISTORY={number}"
            for number in sorted({found.history for found in self.differences})
        ]
        return "\n".join(lines)


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in sorted(counter.items())) or "none"
