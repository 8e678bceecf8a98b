"""Conversations that are kept as trees: the branch that a person sees.

What belongs here: the walk from the last message up to the first. What a message means is each
reader's matter.
"""

from __future__ import annotations

from concordance.sessions.lines import Json, string, table


def branch(nodes: Json, last: object, parent: str) -> list[str]:
    """The ids from the first message to `last`; a node that is missing or comes again ends it.

    Args:
        nodes: The messages by id.
        last: The id of the last one; where it names none, the last message without children
            counts, and where all have some, as they go round in a circle, the last message.
        parent: The key under which a node names the one before.
    """
    known = isinstance(last, str) and isinstance(nodes.get(last), dict)
    at = str(last) if known else _last_leaf(nodes, parent)
    walked: dict[str, None] = {}
    while at is not None and at in nodes and at not in walked:
        walked[at] = None
        before = table(nodes[at]).get(parent)
        at = before if isinstance(before, str) else None
    return list(reversed(walked))


def off_branch(nodes: Json, seen: list[str]) -> list[object]:
    """The nodes of all other branches."""
    kept = set(seen)
    return [node for name, node in nodes.items() if name not in kept]


def event_name(name: str, number: int) -> str:
    """The id of the event of a node, which is the node's own name where that says something."""
    return string(name) or f"node-{number}"


def _last_leaf(nodes: Json, parent: str) -> str | None:
    parents = {
        named for node in nodes.values() if isinstance(named := table(node).get(parent), str)
    }
    names = [name for name in reversed(nodes) if isinstance(nodes[name], dict)]
    return next((name for name in names if name not in parents), names[0] if names else None)
