"""Time of scrubbing by the length of a text: it grows with the length alone.

What belongs here: texts that a detector may be slow on, at three lengths. Run it with
`python -m benchmarks.secrets`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from concordance.adapters.secret_scanner import kingfisher
from concordance.text.scrubbing import Scrubber

LENGTHS: Final = (250_000, 500_000, 1_000_000)
TEXTS: Final = {
    "lines of curl -u": "curl -u admin:hunter2{} https://x.example.org/a\n",
    "curl -u on one line": "curl -u admin:hunter2{} ",
    "curl with a header": "curl -H 'Authorization: Bearer abcdef1234567{}' https://x.example.org\n",
    "password= without a value": "password=",
    "blocks that never end": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n",
    "addresses with a password": "https://app:a1b2c3{}@db.example.org/ ",
    "prose": "A plain line of words about a kettle, and tea in it.\n",
    "prose without a space": "茶を淹れる。",
}


def main() -> int:
    """Print the seconds for each text at each length."""
    with tempfile.TemporaryDirectory() as folder:
        scrubber = Scrubber((kingfisher(Path(folder)),))
        scrubber.scrub("")
        for name, unit in TEXTS.items():
            seconds = []
            for length in LENGTHS:
                units = (unit.format(n) for n in range(length // len(unit) + 1))
                text = "".join(units)[:length]
                began = time.process_time()
                scrubber.scrub(text)
                seconds.append(time.process_time() - began)
            told = "  ".join(f"{one:6.2f} s" for one in seconds)
            sys.stdout.write(f"{name:28}{told}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
