"""Logs that are kept compressed, as bytes.

What belongs here: Zstandard. What the bytes mean is `concordance.sessions`' matter.
"""

from __future__ import annotations

import io

from zstandard import ZstdDecompressor, ZstdError

SUFFIX = ".zst"
MOST_BYTES = 1 << 30
"""A few bytes can unpack to very many; a log of a gigabyte is none that a person held."""
MOST_WINDOW = 1 << 27
"""The memory that unpacking may take beside the result."""
STEP = 1 << 20


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
