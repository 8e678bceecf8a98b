"""Compressed logs: whole, in several frames, cut, damaged, and far too large."""

from __future__ import annotations

import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from concordance.adapters.unpacking import Damaged, breaks_off, unpack


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


@given(st.lists(st.binary(max_size=2_000), max_size=3), st.booleans())
def test_frames_that_are_whole_do_not_break_off(parts: list[bytes], checksum: bool) -> None:
    packer = zstandard.ZstdCompressor(write_checksum=checksum)
    skipped = b"\x50\x2a\x4d\x18\x02\x00\x00\x00xx"
    whole = skipped.join(packer.compress(part) for part in parts)
    assert not breaks_off(whole)


@pytest.mark.parametrize("data", [b"", b"{}\n" * 50_000, os.urandom(300_000)], ids=len)
def test_a_frame_without_its_end_breaks_off(data: bytes) -> None:
    before = packed(b"before")
    whole = before + zstandard.ZstdCompressor(write_checksum=True).compress(data)
    for cut in {1, 2, 3, 4, 5, len(whole) // 2, len(whole) - len(before) - 1}:
        if cut < len(whole) - len(before):
            assert breaks_off(whole[:-cut])
            assert data.startswith(unpack(whole[:-cut]).removeprefix(b"before"))


def test_no_frame_at_all_is_the_end() -> None:
    assert not breaks_off(b"")
    assert breaks_off(b"\x28\xb5")


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
