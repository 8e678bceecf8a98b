"""Makes `answer.svg`: two questions to the demo's index, as a terminal shows them.

make demo && .venv/bin/python docs/images/answer.py
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
COLUMNS = 110
ASKED = (
    ("restore a backup", "--top-k", "1"),
    ("why did Hooge Sands give false alarms?", "--top-k", "3"),
)
# A page that shows the picture asks nobody for a font.
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    """Ask, record, write."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    concordance = Path(sys.executable).with_name("concordance")
    shown = {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    demo = {
        "CONCORDANCE_HOME": str(ROOT / ".demo" / "home"),
        "CONCORDANCE_PROJECTS_FILE": str(ROOT / ".demo" / "projects.toml"),
    }
    for question, *options in ASKED:
        console.print(f"[dim]$[/] concordance search '{question}' {' '.join(options)}")
        done = subprocess.run(
            [concordance, "search", question, *options],
            env=dict(os.environ) | shown | demo,
            capture_output=True,
            text=True,
            check=True,
        )
        console.print(Text.from_ansi(done.stdout))
        console.print()
    picture = console.export_svg(title="concordance", unique_id="answer")
    (ROOT / "docs" / "images" / "answer.svg").write_text(FONT.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main()
