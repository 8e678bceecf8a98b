"""Which scope a path falls in, and the rule that says so."""

from __future__ import annotations

import pytest

from concordance.indexing.scopes import Placed, place, read_adr_dir
from concordance.models import Scope
from concordance.settings import DEFAULT_ADR, DEFAULT_DOCS, ScopeRules

DEFAULT = ScopeRules()


def scope_of(path: str, rules: ScopeRules = DEFAULT, adr_dir: str | None = None) -> Scope | None:
    return place(path, rules, adr_dir).scope


@pytest.mark.parametrize("folder", DEFAULT_DOCS)
def test_the_default_folders_of_documentation(folder: str) -> None:
    for named in (folder, folder.upper(), folder.title()):
        assert place(f"{named}x/y.md", DEFAULT, None) == Placed(
            Scope.DOCS, f"docs folder '{folder}'"
        )


@pytest.mark.parametrize("folder", DEFAULT_ADR)
def test_the_default_folders_of_decisions(folder: str) -> None:
    for named in (folder, folder.upper(), folder.title()):
        assert place(f"{named}0001-x.md", DEFAULT, None) == Placed(
            Scope.ADR, f"adr folder '{folder}'"
        )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("docs/adr/2026-01-01-x/README.md", Scope.ADR),
        ("docs/ADR/0001-x.MD", Scope.ADR),
        ("docs/adr.md", Scope.DOCS),
        ("docs/adrift/x.md", Scope.DOCS),
        ("docs/x.mdx", Scope.DOCS),
        ("docs/x.Markdown", Scope.DOCS),
        ("docs/.md", Scope.DOCS),
        ("docs/ein Name mit ü 🎉:\"'.md", Scope.DOCS),
        ("docs/x.rst", Scope.DOCS),
        ("docs/x.RST", Scope.DOCS),
        ("docs/x.adoc", Scope.DOCS),
        ("docs/x.txt", None),
        ("docs/x.md.png", None),
        ("docs/xmd", None),
        ("documentation/x.md", None),
        ("docs.md", None),
        ("src/docs/x.md", None),
        ("src/README.md", None),
        ("CHANGELOG.md", None),
    ],
)
def test_by_folder_and_ending(path: str, expected: Scope | None) -> None:
    assert scope_of(path) is expected


@pytest.mark.parametrize(
    "name",
    ["README.md", "readme.md", "Readme.MD", "README.markdown", "readme.mdx", "README.rst"],
)
def test_the_readme_at_the_root(name: str) -> None:
    assert place(name, DEFAULT, None) == Placed(Scope.DOCS, "README at the root")
    assert scope_of(name, ScopeRules(root_readme=False)) is None


@pytest.mark.parametrize("name", ["README", "README.txt", "README.de.md", "README-de.md", "md"])
def test_what_is_no_readme(name: str) -> None:
    assert scope_of(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "readme.rst",
        "index.md",
        "_index.md",
        "INDEX.md",
        "template.md",
        "0000-template.md",
        "adr-template.md",
        "adr-short-template.md",
        "EMPTY-ADR.md",
        "madr_template_minimal.rst",
        "templates/decision.md",
        "SUMMARY.md",
        "CONTRIBUTING.md",
    ],
)
def test_what_stands_beside_records_is_documentation(name: str) -> None:
    for folder in DEFAULT_ADR:
        assert place(f"{folder}{name}", DEFAULT, None) == Placed(
            Scope.DOCS, f"README, index or template in adr folder '{folder}'"
        )


@pytest.mark.parametrize(
    "name",
    [
        "0001-use-a-queue.md",
        "001-use-a-queue.rst",
        "adr-007-use-a-queue.md",
        "ADR-007-use-a-queue.md",
        "2026-01-05-use-a-queue.md",
        "2026-01-05_003-use-a-queue.md",
        "use-a-queue.md",
        "use-a-queue.adoc",
        "2026-01-05-use-a-queue/README.md",
        "2026-01-05-use-a-queue/index.md",
        "backend/0001-use-a-queue.md",
        "0007-prompt-template-engine.md",
        "0046-generate-index-files.md",
        "0012-readme-format.md",
        "0003-use-our-adr-template.md",
    ],
)
def test_names_of_records(name: str) -> None:
    assert scope_of(f"docs/adr/{name}") is Scope.ADR
    assert scope_of(f"docs/ADR/{name}") is Scope.ADR
    assert scope_of(f"docs/architecture-decisions/{name}") is Scope.ADR


def test_the_longest_folder_wins_whichever_scope_it_is_of() -> None:
    rules = ScopeRules(
        docs=("docs/", "docs/adr/guides/"), adr=("docs/adr/",), exclude=("docs/adr/guides/old/",)
    )
    assert scope_of("docs/x.md", rules) is Scope.DOCS
    assert scope_of("docs/adr/x.md", rules) is Scope.ADR
    assert scope_of("docs/adr/guides/x.md", rules) is Scope.DOCS
    assert place("docs/adr/guides/old/x.md", rules, None) == Placed(
        None, "excluded folder 'docs/adr/guides/old/'"
    )


def test_a_folder_within_an_excluded_one_can_be_named() -> None:
    rules = ScopeRules(docs=("vendor/ours/docs/",), exclude=("vendor/",))
    assert scope_of("vendor/ours/docs/x.md", rules) is Scope.DOCS
    assert scope_of("vendor/theirs/docs/x.md", rules) is None


def test_of_two_rules_for_one_folder_the_stricter_wins() -> None:
    both = ScopeRules(docs=("a/",), adr=("A/",))
    assert scope_of("a/x.md", both) is Scope.ADR
    assert scope_of("a/x.md", both.model_copy(update={"exclude": ("a/",)})) is None


def test_the_root_can_be_named() -> None:
    everything = ScopeRules(docs=("",))
    assert place("src/x.md", everything, None) == Placed(Scope.DOCS, "docs folder '/'")
    assert scope_of("README.md", ScopeRules(exclude=("",))) is None


def test_no_folder_means_none() -> None:
    assert scope_of("docs/x.md", ScopeRules(docs=(), adr=())) is None


def test_a_folder_named_by_adr_dir_holds_decisions() -> None:
    assert scope_of("architecture/records/1.md") is None
    assert place("Architecture/Records/1.md", DEFAULT, "architecture/records/") == Placed(
        Scope.ADR, "adr folder 'architecture/records/'"
    )
    assert scope_of("docs/guide/1.md", DEFAULT, "docs/guide/") is Scope.ADR


@pytest.mark.parametrize("path", ["docs/x.png", "docs/x.md", "other/x.md", "readme.md"])
def test_every_answer_has_its_rule(path: str) -> None:
    assert place(path, DEFAULT, None).rule


@pytest.mark.parametrize(
    ("data", "folder"),
    [
        (b"doc/adr\n", "doc/adr/"),
        (b"doc/adr", "doc/adr/"),
        (b"./doc/adr/\n", "doc/adr/"),
        (b"  doc//adr  \r\nsecond line\r\n", "doc/adr/"),
        (b"\n\ndoc/adr\n", "doc/adr/"),
        (b"\xef\xbb\xbfdoc/adr\n", "doc/adr/"),
        (b"doc\\adr\r\n", "doc/adr/"),
        ("entscheidungen/für uns".encode(), "entscheidungen/für uns/"),
        (b"", None),
        (b" \n\t\n", None),
        (b".", None),
        (b"./", None),
        (b"..", None),
        (b"../adr", None),
        (b"doc/../../adr", None),
        (b"/etc", None),
        (b"\\server\\adr", None),
    ],
)
def test_what_an_adr_dir_file_names(data: bytes, folder: str | None) -> None:
    assert read_adr_dir(data) == folder


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"\0\0\0", b"# ADR\n" * 500])
def test_an_odd_adr_dir_file_moves_nothing(data: bytes) -> None:
    assert scope_of("docs/x.md", DEFAULT, read_adr_dir(data)) is Scope.DOCS
    assert scope_of("src/x.md", DEFAULT, read_adr_dir(data)) is None
