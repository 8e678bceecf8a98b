"""What a remote says about its branches, and which of them is meant.

What belongs here: reading the output of `git ls-remote` and choosing. What doesn't belong here:
asking the remote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from concordance.adapters.git_policy import OBJECT_ID
from concordance.errors import BranchGone

HEADS: Final = "refs/heads/"

_SYMBOLIC: Final = "ref: "
_BRANCHES_NAMED: Final = 5
_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class RemoteHead:
    """Where a branch stands at the remote; no commit means that the repository is empty."""

    branch: str | None
    commit: str | None


def parse_refs(listing: bytes) -> dict[str, str]:
    """Names and ids of `git ls-remote`; what a symbolic one points to is under `ref: <name>`."""
    refs: dict[str, str] = {}
    # Not splitlines(): a branch may hold a character that Unicode counts as a line's end.
    for line in listing.decode("utf-8", "surrogateescape").split("\n"):
        value, _, name = line.partition("\t")
        if value.startswith(_SYMBOLIC):
            refs[_SYMBOLIC + name] = value.removeprefix(_SYMBOLIC)
        elif OBJECT_ID.fullmatch(value):
            refs[name] = value
    return refs


def choose_head(refs: Mapping[str, str], branch: str | None, url: str) -> RemoteHead:
    """The branch asked for, or the default one, or the news that the repository is empty.

    Raises:
        BranchGone: It does not exist, but others do. This is not the same as an empty repository.
    """
    target = refs.get(f"{_SYMBOLIC}HEAD", "")
    default = target.removeprefix(HEADS) if target.startswith(HEADS) else None
    if branch is None and "HEAD" in refs:
        return RemoteHead(default, refs["HEAD"])
    branches = sorted(name.removeprefix(HEADS) for name in refs if name.startswith(HEADS))
    if not branches:
        return RemoteHead(branch, None)
    if branch in branches:
        return RemoteHead(branch, refs[HEADS + branch])
    branches.sort(key=lambda name: name != default)
    named = ", ".join(map(_shown, branches[:_BRANCHES_NAMED]))
    gone = "the branch that HEAD points to" if branch is None else f"branch {branch!r}"
    raise BranchGone(
        f"{url}: {gone} does not exist", hint=f"Branches that do ({len(branches)} in all): {named}"
    )


def _shown(name: str) -> str:
    # A server may send any bytes as a name, and as many as it likes.
    visible = "".join(character if character.isprintable() else "�" for character in name)
    return visible[:_LONGEST_NAME]
