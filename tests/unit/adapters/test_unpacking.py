"""Compressed logs: whole, in several frames, cut, damaged, and far too large."""

from __future__ import annotations

import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from concordance.adapters.unpacking import Damaged, unpack


def packed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


@given(st.lists(st.binary(max_size=2_000), max_size=3))
def test_frames_are_read_one_after_the_other(parts: list[bytes]) -> None:
    assert unpack(b"".join(packed(part) for part in parts)) == b"".join(parts)


def test_a_log_that_is_still_written_gives_what_is_there() -> None:
    data = os.urandom(400_000)
    found = unpack(packed(data)[:250_000])
    assert 0 < len(found) < len(data)
    assert data.startswith(found)


@pytest.mark.parametrize("data", [b"nonsense", packed(b"fine") + b"junk", b"\0" * 50])
def test_what_is_no_zstandard_is_refused(data: bytes) -> None:
    with pytest.raises(Damaged, match="no whole Zstandard data"):
        unpack(data)


def test_a_few_bytes_can_not_fill_the_memory() -> None:
    bomb = packed(b"\0" * 50_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(Damaged, match="unpacks to more than 1,000,000 bytes"):
        unpack(bomb, most=1_000_000)


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    try:
        unpack(data, most=10_000)
    except Damaged:
        return
