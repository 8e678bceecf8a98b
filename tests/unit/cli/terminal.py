"""A terminal that keeps what it was shown, and what it would obey."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LINK = "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07"
OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(printer: Any, *arguments: Any, **options: Any) -> str:
    out = io.StringIO()
    printer(Console(file=out, width=200, color_system=None), *arguments, **options)
    return out.getvalue()
