from __future__ import annotations

import pytest

from concordance.adapters.postgres.database import Database
from tests.postgres.rows import Shelf


@pytest.fixture
def shelf(database: Database) -> Shelf:
    """The rows of one tenant, and ways to make them."""
    return Shelf(database)
