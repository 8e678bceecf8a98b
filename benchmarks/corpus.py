"""Real Markdown as git projects: public trees where they lie beside the project, else its own."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TREES = ROOT.parent / "shared" / "corpora"


def documents() -> list[str]:
    """Every Markdown text at hand, in a fixed order."""
    if not TREES.is_dir():
        own = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
        return [path.read_text(encoding="utf-8") for path in own]
    found = []
    for archive in sorted(TREES.glob("*.tar.gz")):
        with tarfile.open(archive) as tar:
            for member in sorted(tar.getmembers(), key=lambda m: m.name):
                if member.isfile() and member.name.lower().endswith(".md"):
                    file = tar.extractfile(member)
                    assert file is not None
                    found.append(file.read().decode("utf-8", errors="replace"))
    return found


def make_project(path: Path, texts: list[str]) -> Path:
    """A git project with these texts under docs/."""
    for number, text in enumerate(texts):
        target = path / "docs" / f"part-{number % 97:02d}" / f"page-{number:05d}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    author = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*author, "commit", "-q", "-m", "texts"],
    ):
        subprocess.run(["git", *arguments], cwd=path, check=True, capture_output=True)
    return path
