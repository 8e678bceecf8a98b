"""What git must not do to the rest of the pipeline; git itself is tested beside its adapter."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from concordance.adapters.git_environment import Credential
from concordance.errors import SourceError
from concordance.models import CoverageState, Scope
from concordance.settings import Project
from tests.conftest import IndexMaker
from tests.postgres.driver import ask, covered, reindex

TOKEN = "ghp_FAKE0000"


def test_a_token_in_an_address_is_refused_before_it_is_stored_git_1() -> None:
    with pytest.raises(ValidationError, match="credentials"):
        Project(slug="p", url=f"http://{TOKEN}@127.0.0.1:1/o/r.git")


def test_a_token_that_opens_nothing_is_stored_and_told_nowhere_git_1(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    index = make_index(
        Project(slug="p", url="http://127.0.0.1:1/o/r.git"), allowed_schemes=("http",)
    )
    credential = Credential("x-token", SecretStr(TOKEN))
    with pytest.raises(SourceError) as caught:
        index.fetch("p", credential)
    index.fail_attempt("p", [Scope.DOCS], str(caught.value))
    assert covered(index).state is CoverageState.FAILED
    rows = ask(database_url, "select c::text as row from coverage c")
    rows += ask(database_url, "select p::text as row from projects p")
    assert [row for row in rows if TOKEN in row["row"]] == []
    files = [f for f in (tmp_path / "home").rglob("*") if f.is_file()]
    assert [f for f in files if TOKEN.encode() in f.read_bytes()] == []


@pytest.mark.parametrize(
    ("url", "branch"),
    [
        ('ext::sh -c "touch pwned"', None),
        ("-u./x", None),
        ("--upload-pack=touch pwned", None),
        ("https://example.org/r.git", "--upload-pack=touch pwned"),
        ("https://example.org/r.git", "a..b"),
    ],
)
def test_an_address_that_could_run_a_command_fails_its_project_by_name_git_9(
    make_index: IndexMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    branch: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    index = make_index(Project(slug="p", url=url, branch=branch), allowed_schemes=("https",))
    reindex(index)
    said = covered(index)
    assert said.state is CoverageState.FAILED
    assert said.reason
    assert list(tmp_path.rglob("pwned")) == []
