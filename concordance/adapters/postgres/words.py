"""The words of passages, and the statistics of words: kept right in the transaction of each write.

What belongs here: taking words in and out. How they are searched is `lexical`'s matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concordance.adapters.postgres.database import Connection, Database, fetch_all
from sql import queries

WORD_LOCKS = 0x434F4E06  # first key of our advisory locks on a project's words


@dataclass(frozen=True, slots=True)
class Drift:
    """A language of a project whose average length is not the one that its weights assume."""

    language: str
    passages: int
    average: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A statistic that is not what the rows say; None where one side lacks it."""

    project: str
    language: str
    lexeme: str | None
    stored: float | None
    counted: float | None


def analyse_passages(
    connection: Connection, project_id: int, documents: Sequence[int] | None
) -> None:
    """Analyse the passages of documents, or with None those that are being written."""
    ask = queries("lexical")
    connection.execute(ask["create_analysed"])
    connection.execute(ask["clear_analysed"])
    if documents is None:
        connection.execute(ask["analyse_incoming"], {"project": project_id})
    else:
        key = {"project": project_id, "documents": list(documents)}
        connection.execute(ask["analyse"], key)


def forget_words(connection: Connection, project_id: int, documents: Sequence[int]) -> None:
    """Take the words of documents out, before their passages change or go.

    From here to the end of the transaction no other batch of the project counts words: analysis is
    most of the work, and is done before.
    """
    ask = queries("lexical")
    connection.execute(ask["lock_words"], {"class": WORD_LOCKS, "project": project_id})
    connection.execute(ask["forget"], {"project": project_id, "documents": list(documents)})


def write_words(connection: Connection, tenant: int, project_id: int) -> None:
    """Weigh the words of the passages that were analysed, write them and count them in."""
    ask = queries("lexical")
    key = {"project": project_id, "tenant": tenant}
    for name in ("open_stats", "write", "add_totals"):
        connection.execute(ask[name], key)


def settle_weights(connection: Connection, project_id: int) -> list[Drift]:
    """Weigh a project's passages again where their average length has drifted; returns where.

    What a run does at its end: words that no passage has any more are swept out, and the text index
    is brought in order.
    """
    ask = queries("lexical")
    key = {"project": project_id}
    connection.execute(ask["sweep"], key)
    connection.execute(ask["sweep_languages"], key)
    drifted = fetch_all(connection, ask["drifted"], key, Drift)
    for drift in drifted:
        change = key | {"language": drift.language, "average": drift.average}
        connection.execute(ask["set_average"], change)
        connection.execute(ask["weigh_again"], change)
        connection.execute(ask["drop_terms"], change)
        connection.execute(ask["rebuild_terms"], change)
    connection.execute(ask["tidy_index"])
    return drifted


def check_statistics(database: Database, project_id: int, *, rebuild: bool) -> list[Difference]:
    """Compare a project's statistics with its rows, and with `rebuild` make them anew.

    A largest weight may be too large after a deletion, which costs speed and no answer: only one
    that is too small counts as a difference.
    """
    ask = queries("lexical")
    with database.transaction() as connection:
        if rebuild:  # to look, one statement's snapshot does, on a replica as well
            connection.execute(ask["lock_stats"], {"project": project_id})
        found = fetch_all(connection, ask["differences"], {"project": project_id}, Difference)
        if rebuild:
            key = {"project": project_id, "language": None}
            connection.execute(ask["missing_languages"], key)
            connection.execute(ask["recount_totals"], key)
            settle_weights(connection, project_id)
            connection.execute(ask["drop_terms"], key)
            connection.execute(ask["rebuild_terms"], key)
    return found
