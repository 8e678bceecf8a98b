"""A day with the command line, in the order in which a newcomer would live it."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.acceptance.conftest import Person, Ran
from tests.sources import GitSource

Asking = Callable[..., Ran]


def test_projects_are_added_listed_and_checked(person: Person) -> None:
    added = person.run("projects", "add", "lamp", "lamp", "--sessions", "logs")
    assert added.code == 0, added.err
    assert person.run("projects", "add", "shade", "shade").code == 0
    again = person.run("projects", "add", "lamp", "elsewhere")
    assert again.code == 2
    assert "'lamp' is taken" in again.err
    listed = person.run("projects", "list", "--json").json["projects"]
    assert [(p["slug"], p["indexed"]) for p in listed] == [("lamp", False), ("shade", False)]
    checked = person.run("projects", "check", "--json")
    assert checked.code == 0
    assert "main at" in checked.json["projects"][0]["found"]


def test_asking_before_anything_is_indexed_says_so(person: Person) -> None:
    found = person.run("search", "dim the lamp", "--json")
    assert found.code == 1
    assert found.json["empty_reason"] == "nothing is indexed in what was searched"


def test_a_run_indexes_all_that_can_be_and_names_what_cannot(person: Person) -> None:
    ran = person.run("reindex", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["outcome"] == "flawed"
    states = {(c["project"], c["scope"]): c["state"] for c in ran.json["coverage"]}
    assert states == {
        ("lamp", "docs"): "complete",
        ("lamp", "adr"): "complete",
        ("lamp", "session"): "complete",
        ("shade", "docs"): "partial",
        ("shade", "adr"): "absent",
        ("shade", "session"): "absent",
    }
    assert "docs/broken.md: not UTF-8: byte 0xb2" in ran.json["message"]


def test_a_second_run_says_that_there_is_nothing_to_do(person: Person) -> None:
    ran = person.run("reindex", "lamp", "--verbose")
    assert ran.code == 0
    assert "1 of 1 projects have nothing to do" in ran.err + ran.out
    assert "complete: 1 project," in ran.out


def test_answers_cite_lines_that_hold(person: Person) -> None:
    found = person.run("search", "how is the firmware flashed?", "--json")
    assert found.code == 0
    hit = found.json["hits"][0]
    at = hit["origin"]
    assert at["path"] == "docs/install.md"
    lamp = GitSource(person.folder / "lamp")
    lines = lamp.git("show", f"{at['commit']}:{at['path']}").splitlines()
    cited = "\n".join(lines[at["start_line"] - 1 : at["end_line"]])
    assert hit["content"].strip() == cited.strip()
    assert found.json["degraded"] is False


def test_every_fusion_and_filter_can_be_asked_for(ask_here: Asking) -> None:
    for fusion in ("convex", "rrf", "weighted", "lexical", "vector"):
        found = ask_here("search", "MQTT", "--fusion", fusion, "--scope", "adr", "--json")
        assert found.code == 0, (fusion, found.err)
        assert {hit["scope"] for hit in found.json["hits"]} == {"adr"}
    told = ask_here("search", "dim at night", "--scope", "session")
    assert "lamp:session s1#s1-0" in told.out
    nothing = ask_here("search", "MQTT", "--path", "docs/nowhere/")
    assert nothing.code == 1
    assert "Nothing found: nothing that matches lies under that path" in nothing.out


def test_explain_tells_why(ask_here: Asking) -> None:
    assert "indexed: 1 chunk," in ask_here("explain", "lamp", "docs/install.md").out
    assert "not a text that is read" in ask_here("explain", "lamp", "src/main.c").out
    assert "no such file" in ask_here("explain", "lamp", "docs/gone.md").out
    broken = ask_here("explain", "shade", "docs/broken.md", "--json")
    assert broken.code == 1
    assert broken.json["status"] == "failed"


def test_wrong_use_ends_with_2_and_names_what_is_wrong(ask_here: Asking) -> None:
    for arguments, said in (
        (("search", "  "), "the question is blank"),
        (("search", "x", "--top-k", "0"), "--top-k"),
        (("search", "x", "--top-k", "10000"), "--top-k"),
        (("search", "x", "--threshold", "nan"), "--threshold"),
        (("search", "x", "--fusion", "magic"), "magic"),
        (("search", "x", "--project", "nope"), "there is no project 'nope'"),
        (("reindex", "nope"), "there is no project 'nope'"),
        (("coverage", "nope"), "there is no project 'nope'"),
        (("explain", "nope", "x"), "there is no project 'nope'"),
        (("frobnicate",), "frobnicate"),
    ):
        ran = ask_here(*arguments)
        assert ran.code == 2, (arguments, ran)
        assert said in ran.err, (arguments, ran.err)


def test_a_process_ends_with_the_code_of_its_command(person: Person) -> None:
    ran = person.run("search", "x", "--project", "nope")
    assert ran.code == 2
    assert "there is no project 'nope'" in ran.err


def test_settings_that_cannot_be_used_are_named(ask_here: Asking) -> None:
    ran = ask_here("coverage", CONCORDANCE_DATABASE_POOL="many")
    assert ran.code == 2
    assert "CONCORDANCE_DATABASE_POOL" in ran.err
    ran = ask_here("doctor", "--json", CONCORDANCE_EMBEDDING_MODEL="magic/model")
    assert ran.code == 1
    assert [f["name"] for f in ran.json["findings"] if not f["good"]] == ["embedding"]


def test_secrets_of_a_database_url_are_never_shown(person: Person) -> None:
    url = "postgresql://me:hunter2secret@127.0.0.1:1/x"
    ran = person.run("coverage", CONCORDANCE_DATABASE_URL=url)
    assert ran.code == 1
    assert "can't be reached" in ran.err
    assert "hunter2secret" not in ran.out + ran.err


def test_coverage_can_be_checked_by_a_script(ask_here: Asking) -> None:
    assert ask_here("coverage", "lamp", "--check").code == 0
    assert ask_here("coverage", "--check").code == 1


def test_the_doctor_finds_everything_in_order(person: Person) -> None:
    ran = person.run("doctor")
    assert ran.code == 0, ran.out
    assert re.search(r"pgvector\s+.*yes", ran.out)


def test_help_teaches(person: Person) -> None:
    shown = person.run("--help")
    assert shown.code == 0
    for command in ("reindex", "search", "coverage", "explain", "projects", "backfill", "serve"):
        assert command in shown.out


def test_a_project_can_be_forgotten(person: Person) -> None:
    assert person.run("projects", "forget", "shade").code == 0
    left = {c["project"] for c in person.run("coverage", "--json").json}
    assert left == {"lamp"}
