"""What git must not do to the rest of the pipeline; git itself is tested beside its adapter."""

from __future__ import annotations

import base64
import logging
import shutil
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from psycopg import sql
from pydantic import ValidationError

from concordance.errors import SourceDenied
from concordance.indexing.outcome import Outcome, judge_run
from concordance.models import CoverageState, Scope
from concordance.settings import Credentials, Project
from tests.conftest import IndexMaker
from tests.git_server import (
    TOKEN,
    GitServer,
    files_that_hold,
    git,
    listening,
    processes_with,
    serving,
    silence,
)
from tests.postgres.driver import ask, covered, names_of, passages_of, reindex
from tests.postgres.library import search
from tests.sources import GitSource


@pytest.mark.parametrize("user", [TOKEN, f"x-token:{TOKEN}", f"{TOKEN}:x"])
def test_a_token_in_an_address_is_refused_before_it_is_stored_git_1(user: str) -> None:
    with pytest.raises(ValidationError, match="credentials") as caught:
        Project(slug="p", url=f"http://{user}@127.0.0.1:1/o/r.git")
    assert TOKEN not in caught.value.errors(include_input=False)[0]["msg"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    """A repository behind HTTP that is shown to who has the token."""
    source = GitSource.make(tmp_path / "work", {"docs/a.md": "# A\n\nkettle\n"})
    (tmp_path / "root" / "o").mkdir(parents=True)
    git("clone", "--quiet", "--bare", str(source.path), str(tmp_path / "root" / "o" / "r.git"))
    with serving(GitServer(tmp_path / "root")) as running:
        running.token_wanted = True
        yield running


@pytest.mark.parametrize("token", [TOKEN, f"{TOKEN}-revoked"], ids=["opens", "opens nothing"])
def test_a_token_is_stored_and_told_nowhere_git_1(  # noqa: PLR0917 - fixtures are arguments
    make_index: IndexMaker,
    tmp_path: Path,
    database_url: str,
    server: GitServer,
    caplog: pytest.LogCaptureFixture,
    token: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    project = Project(
        slug="p",
        url=f"{server.url}/o/r.git",
        credentials=Credentials(env="READ_TOKEN", username="x-token"),
    )
    index = make_index(project, allowed_schemes=("http",), environment={"READ_TOKEN": token})
    (surveyed,) = index.survey(["p"], credential=index.credential)
    told = [repr(surveyed), surveyed.reason]
    if token == TOKEN:
        assert index.fetch("p", index.credential(project)).commit is not None
        assert any(server.authorizations)
    else:
        with pytest.raises(SourceDenied) as caught:
            index.fetch("p", index.credential(project))
        told += ["".join(traceback.format_exception(caught.value)), repr(caught.value)]
        index.fail_attempt("p", [Scope.DOCS], str(caught.value))
        assert covered(index).state is CoverageState.FAILED
    told += [caplog.text, index.coverage(["p"]).__repr__()]
    tables = ask(
        database_url, "select tablename as n from pg_tables where schemaname = 'concordance'"
    )
    for table in tables:
        query = sql.SQL("select t::text as row from {} t").format(sql.Identifier(table["n"]))
        told += [row["row"] for row in ask(database_url, query)]
    encoded = base64.b64encode(f"x-token:{token}".encode()).decode()
    assert [text for text in told if TOKEN in text or encoded in text] == []
    for secret in (TOKEN, encoded):
        assert files_that_hold(tmp_path / "home", secret) == []


@pytest.mark.timeout(60, func_only=True)
def test_a_server_that_never_answers_costs_its_project_its_time_alone_git_2(
    make_index: IndexMaker, tmp_path: Path, server: GitServer
) -> None:
    server.token_wanted = False
    healthy = [
        Project(slug=slug, path=GitSource.make(tmp_path / slug, {"docs/a.md": f"# {slug}\n"}).path)
        for slug in ("one", "two")
    ]
    with ThreadPoolExecutor(3) as pool, listening(silence) as silent:
        index = make_index(
            *healthy,
            Project(slug="p", url=silent),
            allowed_schemes=("http", "file"),
            git_timeout_seconds=1,
        )
        list(pool.map(lambda slug: reindex(index, slug), ("one", "p", "two")))
        assert processes_with(silent) == []
    said = covered(index)
    assert said.state is CoverageState.FAILED
    assert "timed out after 1 s" in said.reason
    assert [covered(index, slug=slug).state for slug in ("one", "two")] == (
        [CoverageState.COMPLETE] * 2
    )
    left = sorted(path.name for path in (tmp_path / "home" / "repositories").iterdir())
    assert [name for name in left if name.endswith((".new", ".git"))] == ["one.git", "two.git"]
    mended = make_index(Project(slug="p", url=f"{server.url}/o/r.git"), allowed_schemes=("http",))
    reindex(mended)
    assert covered(mended).state is CoverageState.COMPLETE


@pytest.mark.parametrize("named", [None, "main"])
def test_a_default_branch_that_was_renamed_is_followed_or_missed_by_name_git_4(
    make_index: IndexMaker, tmp_path: Path, database_url: str, named: str | None
) -> None:
    source = GitSource.make(tmp_path / "source", {"docs/a.md": "# A\n\nkettle\n"})
    bare = tmp_path / "bare.git"
    source.git("clone", "--quiet", "--bare", str(source.path), str(bare))
    index = make_index(Project(slug="p", path=bare, branch=named))
    reindex(index)
    source.git("branch", "-m", "main", "trunk")
    commit = source.commit({"docs/a.md": "# A\n\nwalrus\n"})
    source.git("push", "--quiet", str(bare), "trunk")
    git("symbolic-ref", "HEAD", "refs/heads/trunk", directory=bare)
    git("update-ref", "-d", "refs/heads/main", directory=bare)
    reindex(index)
    said = covered(index)
    if named is None:
        assert (said.state, said.indexed_commit) == (CoverageState.COMPLETE, commit)
        assert [p["content"] for p in passages_of(database_url)] == ["# A\n\nwalrus"]
        return
    assert said.state is CoverageState.STALE, "what is there is not shown as current"
    assert "'main'" in said.reason
    assert "trunk" in said.reason
    assert said.indexed_commit != commit
    answer = search(index, "kettle")
    assert [hit.content for hit in answer.hits] == ["# A\n\nkettle"], (
        "a lost branch deletes nothing"
    )
    (docs,) = [f for f in answer.freshness if f.scope is Scope.DOCS]
    assert docs.state is CoverageState.STALE, "and each answer says that it is old"


def test_a_repository_without_a_commit_is_no_failure_git_6(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    bare = tmp_path / "empty.git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    full = GitSource.make(tmp_path / "full", {"docs/a.md": "# A\n\nkettle\n"})
    index = make_index(Project(slug="p", path=bare), Project(slug="full", path=full.path))
    for _ in range(2):
        reindex(index)
        reindex(index, "full")
        said = covered(index)
        assert (said.found, said.indexed_commit, said.state) == (0, None, CoverageState.ABSENT)
        assert covered(index, slug="full").state is CoverageState.COMPLETE
    verdict = judge_run(["p", "full"], index.coverage(["p", "full"]))
    assert verdict.outcome is Outcome.COMPLETE
    full.git("push", "--quiet", str(bare), "main")
    reindex(index)
    assert names_of(database_url) == {"docs/a.md": "docs indexed"}
    assert covered(index).indexed_commit == full.git("rev-parse", "HEAD")


def test_nothing_outside_the_repository_is_read_git_7(
    make_index: IndexMaker, tmp_path: Path, database_url: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "host.md").write_text("# Host\n\nthe xylophone of the worker\n")
    (tmp_path / "beside.md").write_text("# Beside\n\nthe xylophone beside\n")
    source = GitSource.make(
        tmp_path / "source", {"README.md": "# P\n\nkettle\n", "docs/a.md": "a\n"}
    )
    for name, target in {
        "docs/leak.md": str(outside / "host.md"),
        "docs/beside.md": "../../beside.md",
        "docs/up": "../..",
        "docs/loop": ".",
        "docs/inner.md": "../README.md",
        "docs/passwd.md": "/etc/passwd",
        "README.rst": str(outside / "host.md"),
    }.items():
        (source.path / name).symlink_to(target)
    source.git("add", "docs", "README.rst")
    source.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},docs/sub.md")
    source.git("commit", "-q", "-m", "links")
    index = make_index(Project(slug="p", path=source.path))
    reindex(index)
    names = names_of(database_url)
    links = ["README.rst", *(f"docs/{n}.md" for n in ("beside", "inner", "leak", "passwd", "sub"))]
    assert [names.pop(name) for name in links] == ["docs skipped"] * 6
    assert names == {"README.md": "docs indexed", "docs/a.md": "docs indexed"}
    assert covered(index).skipped == 6, "and each is counted"
    reasons = {p.name: p.reason for p in index.problems("p")}
    assert "symbolic link" in (reasons["docs/leak.md"] or "")
    assert "submodule" in (reasons["docs/sub.md"] or "")
    for words in ("xylophone", "root"):
        assert search(index, words, fusion="lexical").hits == ()
    assert not any("xylophone" in p["content"] for p in passages_of(database_url))


def test_a_repository_with_hooks_and_monitors_runs_none_git_9(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    source = GitSource.make(tmp_path / "source", {"docs/a.md": "# A\n\nkettle\n"})
    pwned = tmp_path / "pwned"
    script = source.path / ".git" / "script"
    script.write_text(f"#!/bin/sh\ntouch {pwned}\n")
    script.chmod(0o755)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (source.path / ".git" / "hooks").mkdir(exist_ok=True)
        shutil.copy(script, source.path / ".git" / "hooks" / name)
    for key in ("core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook", "diff.external"):
        source.git("config", key, str(script))
    source.commit({".gitattributes": "*.md filter=evil diff=evil merge=evil\n"})
    for key in ("filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"):
        source.git("config", key, str(script))
    pwned.unlink(missing_ok=True)
    index = make_index(Project(slug="p", path=source.path))
    reindex(index)
    assert covered(index).state is CoverageState.COMPLETE
    assert not pwned.exists()


@pytest.mark.parametrize(
    ("url", "branch"),
    [
        ('ext::sh -c "touch pwned"', None),
        ("-u./x", None),
        ("--upload-pack=touch pwned", None),
        ("file:///etc", None),
        ("http://169.254.1.1/x", None),
        ("https://169.254.1.1/x", None),
        ("https://[::ffff:169.254.169.254]/x", None),
        ("https://0xA9FEA9FE/x", None),
        ("https://example.org/r.git", "-b x"),
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
    assert said.reason.startswith("url " if branch is None else "branch "), said.reason
    assert list(tmp_path.rglob("pwned")) == []
