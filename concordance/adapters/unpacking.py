"""Logs that are kept compressed, as bytes.

What belongs here: Zstandard. What the bytes mean is `concordance.sessions`' matter.
"""

from __future__ import annotations

import io

from zstandard import ZstdDecompressor, ZstdError, frame_header_size, get_frame_parameters

SUFFIX = ".zst"
MOST_BYTES = 1 << 30
"""A few bytes can unpack to very many; a log of a gigabyte is none that a person held."""
MOST_WINDOW = 1 << 27
"""The memory that unpacking may take beside the result."""
STEP = 1 << 20
_FRAME = b"\x28\xb5\x2f\xfd"
_SKIPPED = b"\x2a\x4d\x18"  # after a byte from 0x50 to 0x5f
_CHECKSUM = 4
_RUN = 1
"""The type of a block that holds one byte, whatever its size."""
_MOST_BLOCKS = 1_000_000


class Damaged(Exception):
    """The bytes are not what the name says, or unpack to too much; the message is the reason."""


def unpack(data: bytes, *, most: int = MOST_BYTES) -> bytes:
    """What compressed bytes hold, as far as they go: a log may still be being written.

    Raises:
        Damaged: They are no Zstandard, or hold more than `most` bytes.
    """
    parts: list[bytes] = []
    total = 0
    try:
        packed = ZstdDecompressor(max_window_size=MOST_WINDOW)
        with packed.stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
            while part := reader.read(STEP):
                parts.append(part)
                total += len(part)
                if total > most:
                    raise Damaged(f"unpacks to more than {most:,} bytes")
    except ZstdError:
        raise Damaged("no whole Zstandard data") from None
    return b"".join(parts)


def breaks_off(data: bytes) -> bool:
    """Whether the last frame of compressed bytes that can be unpacked lacks its end.

    It is told by the lengths that stand in the bytes: a frame without its end unpacks without an
    error, to as many blocks as are whole, which may be none.
    """
    at, blocks = 0, 0
    while at < len(data) and blocks < _MOST_BLOCKS:
        if data[at + 1 : at + 4] == _SKIPPED:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        if data[at : at + 4] != _FRAME:
            return True
        try:
            head = data[at : at + 32]
            at += frame_header_size(head)
            checked = get_frame_parameters(head).has_checksum
        except ZstdError:
            return True
        last = False
        while not last and at < len(data):
            header = int.from_bytes(data[at : at + 3], "little")
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            at += 3 + (1 if kind == _RUN else size)
            blocks += 1
        if not last:
            return True
        at += _CHECKSUM if checked else 0
    return at > len(data)
