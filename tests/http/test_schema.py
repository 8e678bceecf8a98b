"""What schemathesis makes of the OpenAPI document finds nothing that the document does not say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.http.conftest import OTHER, Site

# Seconds for a tenth of which it is done.
PATIENCE = 120


def test_schemathesis_finds_nothing(site: Site, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("schemathesis")), "--no-color"),
            *("--config-file", str(Path(__file__).with_name("schemathesis.toml"))),
            *("run", f"{site.address}/openapi.json", "--header", f"Authorization: Bearer {OTHER}"),
            *("--seed", "1", "--max-examples", "8", "--phases", "examples,coverage,fuzzing"),
        ],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
