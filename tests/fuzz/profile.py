"""How long the fuzzing is: `make fuzz` says so. No file here is named as a test is.

A decorator, and no profile that is loaded: that would hold for every test of a run that passes by
this folder.
"""

from __future__ import annotations

import os
from datetime import timedelta

from hypothesis import HealthCheck, settings

FUZZED = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "2000")),
    deadline=timedelta(seconds=20),
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
