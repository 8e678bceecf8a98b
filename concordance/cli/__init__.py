"""The command line: `concordance`.

What belongs here: commands, and how their results look. The outermost room: it may start flows,
and nothing imports it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from types import FrameType

from concordance.errors import ConcordanceError, UsageError
from concordance.interruption import abandoned, request_stop

FAILED = 1
USAGE = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 good, 1 something failed and is named, 2 wrong command."""
    code = run(sys.argv[1:] if arguments is None else arguments)
    if abandoned():
        # Prefect would try for hours to tell its server, which is gone, what happened.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code."""
    from cyclopts import CycloptsError  # noqa: PLC0415 - loading is most of a short command's time
    from rich.console import Console  # noqa: PLC0415 - likewise
    from rich.text import Text  # noqa: PLC0415 - likewise

    from concordance.cli.app import app  # noqa: PLC0415 - likewise
    from concordance.escaping import safe  # noqa: PLC0415 - likewise

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that knows no emoji still gets the rest
            stream.reconfigure(errors="backslashreplace")
    errors = Console(stderr=True)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        result = app(
            list(arguments), exit_on_error=False, print_error=True, result_action="return_value"
        )
    except CycloptsError:
        return USAGE  # the parser has said what was wrong
    except (ConcordanceError, OSError, KeyboardInterrupt) as error:
        code, message = _explain(error)
        if message:
            errors.print(Text(f"concordance: {safe(message)}", style="red"), soft_wrap=True)
        return code
    return result if isinstance(result, int) else 0


def _explain(error: ConcordanceError | OSError | KeyboardInterrupt) -> tuple[int, str]:
    """The exit code of an error, and what to say of it."""
    match error:
        case UsageError():
            return USAGE, str(error)
        case BrokenPipeError():
            # Whoever read our output has seen enough; what Python still holds must go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE, ""
        case OSError():
            return FAILED, error.strerror or str(error)
        case KeyboardInterrupt():
            return (
                128 + signal.SIGINT,
                "interrupted; what was committed stays, the next run goes on",
            )
        case _:
            return FAILED, str(error)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End at the next whole unit of work: threads can't be interrupted, but they can be asked."""
    request_stop()
    signal.default_int_handler(number, frame)
