"""A Prefect worker that ends with the process that started it, however that one ends.

    python -m concordance.cli.worker --pool NAME

What belongs here: the tie. Standard input is the read end of a pipe that the parent alone can
write to: it ends when the parent does, even where that was killed.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

# A worker ends its runs first; what is left after this is ended with it.
GRACE_SECONDS = 30.0


def main() -> None:
    """Work until the parent is gone, or until told to end."""
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    sys.argv = ["prefect", "worker", "start", *sys.argv[1:]]
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)


def _end_with_parent() -> None:
    # Not by `sys.stdin`, whose lock a thread must not hold when the interpreter ends.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
