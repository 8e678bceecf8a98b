"""Conversations that are kept as trees: the branch that a person sees.

What belongs here: the walk from the last message up to the first. What a message means is each
reader's matter.
"""

from __future__ import annotations

from collections.abc import Mapping

from concordance.sessions.lines import Json, table


def branch(nodes: Mapping[str, object], last: object, parent: str) -> list[str]:
    """The ids from the first message to `last`; a node that is missing or comes again ends it.

    Args:
        nodes: The messages by id.
        last: The id of the last one; where it names none, the last node without children counts.
        parent: The key under which a node names the one before.
    """
    at = last if isinstance(last, str) and last in nodes else _last_leaf(nodes, parent)
    walked: dict[str, None] = {}
    while at is not None and at in nodes and at not in walked:
        walked[at] = None
        before = table(nodes[at]).get(parent)
        at = before if isinstance(before, str) else None
    return list(reversed(walked))


def off_branch(nodes: Mapping[str, object], seen: list[str]) -> list[Json]:
    """The nodes of all other branches."""
    kept = set(seen)
    return [table(node) for name, node in nodes.items() if name not in kept]


def _last_leaf(nodes: Mapping[str, object], parent: str) -> str | None:
    parents = {
        named for node in nodes.values() if isinstance(named := table(node).get(parent), str)
    }
    return next((name for name in reversed(list(nodes)) if name not in parents), None)
