"""What Postgres's own planner knows of the tables, kept near the truth.

What belongs here: having it look anew after much was written. Autovacuum does so as well, a minute
later, and not at all where the server ends with the run: until then a long question is planned as
if there were no words.
"""

from __future__ import annotations

from concordance.adapters.postgres.database import Database, fetch_value
from sql import queries

# Below so many passages every plan is fast.
LEAST_PASSAGES = 1_000
# The share of the passages that may have come or gone before the planner looks again.
CHANGED_SHARE = 0.2


def look_anew_if_much_changed(database: Database) -> bool:
    """Have the planner look at the tables if they grew or shrank; returns whether it did."""
    ask = queries("planner")
    with database.statement() as connection:
        given = {"least": LEAST_PASSAGES, "share": CHANGED_SHARE}
        if fetch_value(connection, ask["outdated"], given) is None:
            return False
        connection.execute(ask["look_anew"])
    return True
