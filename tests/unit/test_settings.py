"""What settings and projects may be, and what is refused before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from concordance.settings import (
    ALL_SCOPES,
    Configuration,
    Credentials,
    Project,
    ScopeRules,
    SessionSource,
    Settings,
)

TOKEN = "ghp_FAKE0000"


def refusal(model: type[Any], **values: Any) -> str:
    """The message of the one fault; the value itself is left out of it, as it may be a secret."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(values)
    (fault,) = caught.value.errors(include_input=False, include_url=False, include_context=False)
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


# --- slugs and folders -----------------------------------------------------------------------


@pytest.mark.parametrize("slug", ["a", "0", "a-b", "a.b_c", "a" * 64])
def test_slugs(slug: str) -> None:
    assert Project(slug=slug, path=Path("/r")).slug == slug


@pytest.mark.parametrize(
    "slug",
    ["", "A", "-a", "a-", ".", "..", "a/b", "a b", "ä", "a" * 65, "a\n", "a\0", "[red]", "--help"],
)
def test_bad_slugs(slug: str) -> None:
    assert refusal(Project, slug=slug, path="/r").startswith(
        "slug: Value error, a slug has 1 to 64"
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("docs", "docs/"),
        ("docs/", "docs/"),
        ("docs//adr", "docs/adr/"),
        ("", ""),
        ("a b/ü", "a b/ü/"),
    ],
)
def test_folders_end_with_a_slash(given: str, kept: str) -> None:
    assert ScopeRules(docs=(given,)).docs == (kept,)


@pytest.mark.parametrize("folder", ["/", "/docs", "../x", "a/../b", ".", "./docs", "a/./b", "a\0"])
def test_folders_are_named_from_the_root(folder: str) -> None:
    for key in ("docs", "adr", "exclude"):
        assert "named from the repository's root" in refusal(ScopeRules, **{key: [folder]})


# --- where a project is ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/o/r.git",
        "https://example.org:8443/o/@scope/r",
        "ssh://git@example.org/o/r.git",
        "SSH://git@example.org/o/r.git",
        "git@example.org:o/r.git",
        "example.org:o/r.git",
        "/srv/a@b/r.git",
        "file:///srv/r.git",
        "ftp://example.org/r",
    ],
)
def test_addresses_without_a_secret_are_taken_and_judged_later(url: str) -> None:
    project = Project(slug="a", url=url)
    assert (project.url, project.location) == (url, url)


@pytest.mark.parametrize(
    "url",
    [
        f"https://x-token:{TOKEN}@git.example.com/o/r.git",
        f"https://{TOKEN}@git.example.com/o/r.git",
        f"https://{TOKEN}:@git.example.com",
        f"https://@git.example.com/{TOKEN}",
        f"HTTPS://{TOKEN}@git.example.com/o/r.git",
        f"https://[{TOKEN}]@git.example.com/o/r.git",
        f"ssh://git:{TOKEN}@git.example.com/o/r.git",
        f"ssh://git%3A{TOKEN}@git.example.com/o/r.git",
        f"git:{TOKEN}@git.example.com:o/r.git",
        f"file://user:{TOKEN}@host/r",
    ],
)
def test_an_address_with_user_information_is_refused_with_a_hint(url: str) -> None:
    message = refusal(Project, slug="a", url=url)
    assert message.startswith("url: Value error, it holds user information")
    assert "'credentials'" in message
    assert TOKEN not in message


def test_an_address_with_a_query_is_refused_as_it_could_hold_a_token() -> None:
    message = refusal(Project, slug="a", url=f"https://example.org/r?private_token={TOKEN}")
    assert message.startswith("url: Value error, it holds a query")
    assert TOKEN not in message


@pytest.mark.parametrize("path", [f"https://{TOKEN}@example.org/r", "SSH://git@example.org/r"])
def test_an_address_is_no_path(path: str) -> None:
    message = refusal(Project, slug="a", path=path)
    assert message == "path: Value error, it is an address; write it under 'url'"


def test_a_path_holds_no_nul() -> None:
    assert refusal(SessionSource, path="/logs\0") == "path: Value error, a path holds no NUL"


@pytest.mark.parametrize(
    "values", [{}, {"url": "https://example.org/r", "path": "/r"}], ids=["neither", "both"]
)
def test_exactly_one_of_url_and_path(values: dict[str, str]) -> None:
    assert refusal(Project, slug="a", **values).endswith("give exactly one of 'url' and 'path'")


def test_a_path_is_the_location_where_there_is_no_url() -> None:
    assert Project(slug="a", path=Path("/srv/r")).location == "/srv/r"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "example.org/r", "https://", ""])
def test_pages_have_a_web_address(url: str) -> None:
    assert "starts with https://" in refusal(Project, slug="a", path="/r", web_url=url)


@pytest.mark.parametrize(
    "rest", [f"user:{TOKEN}@example.org", f"{TOKEN}@example.org/x", f"[{TOKEN}]@example.org"]
)
def test_pages_and_providers_hold_no_user_information(rest: str) -> None:
    for scheme in ("http", "https"):
        for message in (
            refusal(Project, slug="a", path="/r", web_url=f"{scheme}://{rest}"),
            refusal(Settings, home="/h", ollama_url=f"{scheme}://{rest}"),
            refusal(Settings, home="/h", reranker_url=f"{scheme}://{rest}"),
        ):
            assert "user information" in message
            assert TOKEN not in message


@pytest.mark.parametrize("rest", [f"example.org/?key={TOKEN}", f"example.org/x#{TOKEN}"])
def test_pages_and_providers_hold_no_query(rest: str) -> None:
    for message in (
        refusal(Project, slug="a", path="/r", web_url=f"https://{rest}"),
        refusal(Settings, home="/h", ollama_url=f"https://{rest}"),
        refusal(Settings, home="/h", reranker_url=f"https://{rest}"),
    ):
        assert "a query or a fragment" in message
        assert TOKEN not in message


@pytest.mark.parametrize("rest", ["example.org/a b", "example.org/\x1b[2J", "exa\nmple.org"])
def test_pages_and_providers_hold_no_control_character(rest: str) -> None:
    assert "control character" in refusal(Settings, home="/h", reranker_url=f"https://{rest}")


# --- credentials -----------------------------------------------------------------------------


@pytest.mark.parametrize("values", [{}, {"env": "A", "secret_block": "b"}])
def test_credentials_name_one_place(values: dict[str, str]) -> None:
    assert "exactly one of 'env'" in refusal(Credentials, **values)


def test_a_token_itself_is_no_setting() -> None:
    message = refusal(Credentials, env="TOKEN", token=TOKEN)
    assert message.startswith("token:")
    assert TOKEN not in message


# --- settings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("database_pool", 0),
        ("database_pool", 201),
        ("embedding_model", "nomic"),
        ("embedding_model", "Ollama/x"),
        ("embedding_model", "ollama/ x"),
        ("git_timeout_seconds", 0),
        ("embedding_timeout_seconds", float("nan")),
        ("max_files", 0),
        ("max_file_bytes", 1),
        ("max_parallel_projects", 65),
        ("tenant", "A B"),
        ("ollama_url", "127.0.0.1:11434"),
        ("no_such_key", 1),
    ],
)
def test_values_out_of_bounds_name_their_key(key: str, value: object) -> None:
    assert refusal(Settings, home="/h", **{key: value}).startswith(f"{key}: ")


def test_the_password_of_the_database_shows_nowhere() -> None:
    settings = Settings(home=Path("/h"), database_url=SecretStr(f"postgresql://u:{TOKEN}@db/x"))
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert TOKEN not in shown


def test_values_can_not_be_changed() -> None:
    project = Project(slug="a", path=Path("/r"))
    with pytest.raises(ValidationError, match="frozen"):
        project.slug = "b"


def test_a_project_is_found_by_its_slug() -> None:
    projects = (Project(slug="a", path=Path("/a")), Project(slug="b", path=Path("/b")))
    configuration = Configuration(settings=Settings(home=Path("/h")), projects=projects)
    assert configuration.project("b") is projects[1]
    assert configuration.project("c") is None


def test_all_scopes_are_all() -> None:
    assert [scope.value for scope in ALL_SCOPES] == ["docs", "adr", "session"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "give exactly one of 'path' and 'query'"),
        ({"path": "/logs", "query": "select 1", "url_env": "X"}, "give exactly one of"),
        ({"query": "select 1"}, "a query needs 'url_env'"),
        ({"path": "/logs", "url_env": "X"}, "'url_env' and 'marker' belong to a 'query'"),
        ({"path": "/logs", "marker": "select 1"}, "'url_env' and 'marker' belong to a 'query'"),
        ({"query": "select 1", "url_env": "X", "format": "codex"}, "belong to a 'path'"),
        ({"query": "select 1", "url_env": "postgresql://u:p@h/d"}, "url_env"),
        ({"path": "/logs", "format": "Codex!"}, "format"),
    ],
)
def test_a_source_of_sessions_is_a_path_or_a_query(values: dict[str, str], reason: str) -> None:
    assert reason in refusal(SessionSource, **values)


def test_the_address_of_a_database_is_not_repeated() -> None:
    address = "postgresql://u:otter@h/d"
    assert "otter" not in refusal(SessionSource, query="select 1", url_env=address)
