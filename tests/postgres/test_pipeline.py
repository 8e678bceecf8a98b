"""The pipeline through the front door, on real git repositories and a provider on a real socket."""

from __future__ import annotations

import uuid

from concordance.index import Index
from concordance.models import CoverageState, Scope
from concordance.settings import Project, ScopeRules
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeOllama
from tests.postgres.driver import (
    ask,
    better_than_the_truth,
    covered,
    documents_of,
    names_of,
    needs,
    passages_of,
    reindex,
)
from tests.postgres.shop import FILES, found
from tests.sources import GitSource


def test_a_first_run_indexes_the_files_of_its_scopes(
    make_index: IndexMaker, project: Project, database_url: str, provider: FakeOllama
) -> None:
    index = make_index(project)
    assert needs(index) == "index"
    reindex(index)
    assert names_of(database_url) == {
        "README.md": "docs indexed",
        "docs/guide.md": "docs indexed",
        "docs/adr/0001-queue.md": "adr indexed",
    }
    assert all(p["vector"] for p in passages_of(database_url))
    docs, adr, session = (covered(index, scope) for scope in Scope)
    assert (docs.state, docs.found, docs.indexed) == (CoverageState.COMPLETE, 2, 2)
    assert adr.state is CoverageState.COMPLETE
    assert session.state is CoverageState.ABSENT
    assert all(text.startswith("search_document: ") for text in provider.inputs[1:])


def test_a_second_run_has_nothing_to_do(
    index: Index, provider: FakeOllama, database_url: str
) -> None:
    before = documents_of(database_url), passages_of(database_url)
    success = covered(index).last_success
    provider.forget()
    assert needs(index) == "none"
    looked = covered(index)
    assert success is not None
    assert looked.last_success is not None
    assert looked.last_success > success, "to find nothing new is a success"
    assert looked.last_complete == looked.last_success
    reindex(index)
    assert provider.calls == 0
    assert (documents_of(database_url), passages_of(database_url)) == before
    assert covered(index).state is CoverageState.COMPLETE


def test_only_the_passages_that_changed_are_embedded(
    index: Index, source: GitSource, provider: FakeOllama
) -> None:
    provider.forget()
    commit = source.commit({"docs/guide.md": "# Guide\n\nHow to brew.\n\n## Water\n\nUse cold.\n"})
    assert needs(index) == "index"
    reindex(index)
    assert [text.split("\n")[-1] for text in provider.inputs] == ["Use cold."]
    assert covered(index).indexed_commit == commit
    assert found(index, "boil") == []
    assert found(index, "cold") == [f"p:docs/guide.md:5-7@{commit[:12]}"]


def test_renamed_and_moved_files_embed_nothing_inc_1(
    index: Index, source: GitSource, provider: FakeOllama, database_url: str
) -> None:
    ids = ask(database_url, "select id from chunks order by id")
    provider.forget()
    source.git("mv", "docs/guide.md", "docs/adr/0002-brew.md")
    source.git("mv", "docs/adr/0001-queue.md", "docs/queue.md")
    commit = source.commit({})
    reindex(index)
    assert provider.calls == 0
    assert names_of(database_url) == {
        "README.md": "docs indexed",
        "docs/adr/0002-brew.md": "adr indexed",
        "docs/queue.md": "docs indexed",
    }
    assert ask(database_url, "select id from chunks order by id") == ids
    for passage in passages_of(database_url):
        assert passage["scope"] == passage["lexical_scope"] == passage["vector_scope"]
    assert found(index, "orders", scopes=["docs"]) == [f"p:docs/queue.md:1-3@{commit[:12]}"]
    assert found(index, "orders", scopes=["adr"]) == []
    assert covered(index, Scope.ADR).state is CoverageState.COMPLETE


def test_files_that_change_names_in_a_chain_embed_nothing(
    index: Index, source: GitSource, provider: FakeOllama
) -> None:
    guide, queue = str(FILES["docs/guide.md"]), str(FILES["docs/adr/0001-queue.md"])
    provider.forget()
    source.commit(
        {"docs/guide.md": queue, "docs/next.md": guide}, delete=["docs/adr/0001-queue.md"]
    )
    reindex(index)
    assert provider.calls == 0
    assert covered(index).state is CoverageState.COMPLETE


def test_deleted_files_are_gone_from_every_table_inc_1(
    index: Index, source: GitSource, database_url: str
) -> None:
    source.commit({}, delete=["docs/guide.md", "docs/adr/0001-queue.md"])
    reindex(index)
    assert names_of(database_url) == {"README.md": "docs indexed"}
    counts = "select (select count(*) from chunks) as k, (select count(*) from lexical) as l, "
    counts += "(select count(*) from embeddings) as e"
    assert ask(database_url, counts) == [{"k": 1, "l": 1, "e": 1}]
    assert covered(index, Scope.ADR).state is CoverageState.ABSENT
    assert found(index, "brew queue") == []


def test_a_folder_that_the_rules_leave_out_is_left_out_inc_1(
    make_index: IndexMaker, project: Project, database_url: str
) -> None:
    reindex(make_index(project))
    rules = ScopeRules(docs=("docs/",), adr=(), exclude=("docs/adr/",), root_readme=False)
    index = make_index(project.model_copy(update={"scopes": rules}))
    assert needs(index) == "index", "the rules changed, the source did not"
    reindex(index)
    assert names_of(database_url) == {"docs/guide.md": "docs indexed"}
    assert needs(index) == "none"


def test_another_language_analyses_every_passage_anew_and_embeds_nothing(
    make_index: IndexMaker, project: Project, provider: FakeOllama, database_url: str
) -> None:
    reindex(make_index(project))
    ids = ask(database_url, "select id from chunks order by id")
    provider.forget()
    index = make_index(project.model_copy(update={"language": "simple"}))
    assert needs(index) == "index"
    reindex(index)
    assert [text for text in provider.inputs if text.startswith("search_document")] == []
    assert ask(database_url, "select id from chunks order by id") == ids
    assert found(index, "sells") == [found(index, "kettles")[0]]
    assert any("'sells'" in p["lexemes"] for p in passages_of(database_url))
    assert needs(index) == "none"


def test_a_rewritten_history_is_followed(
    index: Index, source: GitSource, database_url: str
) -> None:
    source.commit({"docs/late.md": "# Late\n\ntext\n"})
    reindex(index)
    source.git("reset", "-q", "--hard", "HEAD~1")
    source.git("commit", "-q", "--amend", "-m", "another")
    commit = source.commit({"docs/other.md": "# Other\n\ntext\n"})
    reindex(index)
    assert "docs/late.md" not in names_of(database_url)
    assert {d["commit"] for d in documents_of(database_url)} == {commit}


def test_a_commit_that_touches_no_indexed_file_moves_the_commit(
    index: Index, source: GitSource, provider: FakeOllama, database_url: str
) -> None:
    provider.forget()
    commit = source.commit({"src/main.py": "print('other')\n"})
    assert needs(index) == "index"
    reindex(index)
    assert provider.calls == 0
    assert covered(index).indexed_commit == covered(index, Scope.ADR).indexed_commit == commit
    assert {d["commit"] for d in documents_of(database_url)} == {commit}
    assert needs(index) == "none"


def test_a_full_run_writes_everything_and_changes_nothing(
    index: Index, provider: FakeOllama, database_url: str
) -> None:
    before = passages_of(database_url)
    provider.forget()
    files, _ = reindex(index, full=True)
    assert (files.written, files.unchanged) == (3, 0)
    assert provider.calls == 0
    assert passages_of(database_url) == before


def test_only_the_scopes_asked_for_are_brought_up_to_date(
    index: Index, source: GitSource, database_url: str
) -> None:
    commit = source.commit({"docs/new.md": "# New\n", "docs/adr/0002-new.md": "# 2. New\n"})
    reindex(index, scopes=[Scope.DOCS])
    assert "docs/new.md" in names_of(database_url)
    assert "docs/adr/0002-new.md" not in names_of(database_url)
    assert covered(index).indexed_commit == commit
    assert covered(index, Scope.ADR).indexed_commit != commit
    assert needs(index) == "index"


def test_a_scope_that_a_file_is_taken_from_is_brought_up_to_date_as_well(
    index: Index, source: GitSource, database_url: str
) -> None:
    """A README that is a record makes documentation of the plain files beside it."""
    source.commit({"docs/adr/tea/notes.md": "# Notes\n\nOn leaves.\n"})
    reindex(index)
    assert names_of(database_url)["docs/adr/tea/notes.md"] == "adr indexed"
    record = "# Tea\n\nStatus: accepted\n\n## Context\n\nThirst.\n\n## Decision\n\nGreen.\n"
    commit = source.commit({"docs/adr/tea/README.md": record})
    reindex(index, scopes=[Scope.DOCS])
    assert names_of(database_url)["docs/adr/tea/notes.md"] == "docs indexed"
    assert better_than_the_truth(index, database_url) == []
    assert covered(index, Scope.ADR).indexed_commit == commit
    assert names_of(database_url)["docs/adr/tea/README.md"] == "adr indexed"
    assert needs(index) == "none"


def test_while_rows_change_the_figures_are_those_of_the_rows(
    index: Index, source: GitSource, database_url: str
) -> None:
    """Also of a run that is gone: nobody counts for it."""
    before = covered(index)
    commit = source.commit({"docs/guide.md": "# Guide\n\nNew.\n\n## Milk\n\nNew, too.\n"})
    with index.hold("p", uuid.uuid4(), on_wait=lambda: None) as held:
        fetched = index.fetch("p")
        index.write(held, "p", index.plan_files(held, "p", fetched.commit))
    said = covered(index)
    assert (said.state, said.indexed_commit) == (CoverageState.STALE, before.indexed_commit)
    assert said.remote_commit == commit
    assert said.chunks_with_vector < said.chunks
    assert better_than_the_truth(index, database_url) == []


def test_adr_dir_names_another_folder(
    make_index: IndexMaker, source: GitSource, project: Project, database_url: str
) -> None:
    source.commit({".adr-dir": "decisions\n", "decisions/0001-x.md": "# 1. X\n\ntext\n"})
    index = make_index(project)
    reindex(index)
    assert names_of(database_url)["decisions/0001-x.md"] == "adr indexed"
    source.commit({}, delete=[".adr-dir"])
    reindex(index)
    assert "decisions/0001-x.md" not in names_of(database_url)


def test_a_run_over_an_unchanged_repository_writes_no_row_of_a_document(
    index: Index, database_url: str
) -> None:
    written = "select id, xmin::text as by from {} order by id"
    tables = ("documents", "chunks")
    before = [ask(database_url, written.format(table)) for table in tables]
    reindex(index)
    assert [ask(database_url, written.format(table)) for table in tables] == before


def test_a_new_commit_writes_the_files_that_it_is_new_to(
    index: Index, source: GitSource, database_url: str
) -> None:
    commit = source.commit({"docs/new.md": "# New\n\nText.\n"})
    reindex(index)
    assert {d["commit"] for d in documents_of(database_url)} == {commit}
