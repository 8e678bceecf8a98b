"""What the demo leaves for a shell to read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from concordance.cli.demo import write_activate
from concordance.cli.orchestration import DEPLOYMENTS, project_root


def test_a_shell_that_reads_it_uses_the_demo_and_tells_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    write_activate(folder, "http://127.0.0.1:4711/api")
    names = (
        *("CONCORDANCE_HOME", "DO_NOT_TRACK", "PREFECT_SERVER_ANALYTICS_ENABLED"),
        *("PREFECT_API_URL", "PATH"),
    )
    said = subprocess.run(
        ["/bin/sh", "-c", f'. ./activate; printf "%s\\n" {" ".join(f"${n}" for n in names)}'],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "IFS": "\n"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert str(folder / "home") in said.replace("\n", " ")
    assert "\n1\nfalse\nhttp://127.0.0.1:4711/api\n" in said
    assert ":/usr/bin:/bin" in said


def test_no_deployment_names_an_empty_list_of_schedules() -> None:
    """Prefect warns of one each time it deploys, and keeps the schedules that there are."""
    text = (project_root() / DEPLOYMENTS).read_text(encoding="utf-8")
    assert text.count("schedules:") == 2
    assert re.search(r"schedules:\s*\[\s*\]", text) is None
