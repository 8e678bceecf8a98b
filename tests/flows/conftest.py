"""Flows run with Prefect's own test server and the real database."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.client.schemas.objects import Artifact
from prefect.client.schemas.sorting import ArtifactSort
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.testing.utilities import prefect_test_harness

from tasks import shared

HERE = "tests/flows/"


@contextmanager
def harness() -> Iterator[None]:
    """Prefect's test server, quiet and without heartbeats."""
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    with (
        prefect_test_harness(server_startup_timeout=90),
        # A flow's heartbeat thread is joined at its end, which takes a second each.
        temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
    ):
        yield


# A server is at work though nobody asks it, so it ends with the last test of this folder.
_kept = ExitStack()
_opened: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Close the server after the last test of this folder."""
    yield
    if nextitem is None or not nextitem.nodeid.startswith(HERE):
        _kept.close()
        _opened.clear()


@pytest.fixture(autouse=True)
def prefect_server() -> None:
    """One Prefect server for all tests of flows."""
    if not _opened:
        _kept.enter_context(harness())
        _opened.append(HERE)


def artifacts(key: str) -> list[Artifact]:
    """Every artifact of a key that Prefect keeps, the newest first."""
    with get_client(sync_client=True) as client:
        return client.read_artifacts(
            artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key])),
            sort=ArtifactSort.CREATED_DESC,
        )


@pytest.fixture(autouse=True)
def no_index_left() -> Iterator[None]:
    """Each test brings an index of its own."""
    yield
    shared.close_shared()
