"""The runtime of the local models keeps no record of this machine for its makers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EMBEDS = """
from concordance.adapters.embedding import open_embedder
from concordance.settings import Settings
embedder = open_embedder("local/all-minilm-l6-v2", Settings(home=Path({home!r})))
embedder.embed_documents(["the kettle"])
embedder.close()
"""
RERANKS = """
from concordance.adapters.reranking import open_reranker
from concordance.settings import Settings
open_reranker("local/" + {home!r}, Settings(home=Path({home!r})))
"""


@pytest.mark.parametrize("work", [EMBEDS, RERANKS], ids=["embedder", "reranker"])
def test_nothing_is_written_into_the_home_folder(tmp_path: Path, work: str) -> None:
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "from pathlib import Path\n" + work.format(home=str(tmp_path / "c")),
        ],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
