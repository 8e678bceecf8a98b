"""The deadline and what it ends, and what git's words mean."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from concordance.adapters.git_diagnosis import diagnose, scrub
from concordance.adapters.git_environment import git_environment
from concordance.adapters.git_policy import GitPolicy
from concordance.adapters.git_process import Deadline, DeadlinePassed, Finished, OutputTooLong, run
from concordance.errors import (
    BranchGone,
    DiskFull,
    Retryable,
    SourceDenied,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceUnavailable,
)

URL = "https://example.org/r.git"
# A group that was not ended would be waited for until then, and none of what is below takes long.
pytestmark = pytest.mark.timeout(30)


def shell(script: str, seconds: float = 600, longest: int = 1_000_000) -> Finished:
    return run(
        ["sh", "-c", script],
        environment={"PATH": "/usr/bin:/bin", "ONLY": "this"},
        directory=Path("/"),
        deadline=Deadline.after(seconds),
        longest_output=longest,
    )


def wait_for_end(pid_file: Path) -> None:
    stat = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    with suppress(FileNotFoundError, ProcessLookupError):
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)


def test_both_outputs_and_the_exit_are_returned() -> None:
    finished = shell("echo out; echo err >&2; exit 3")
    assert (finished.code, finished.out, finished.err) == (3, b"out\n", "err\n")


def test_a_large_output_arrives_whole() -> None:
    assert len(shell("head -c 900000 /dev/zero; head -c 900000 /dev/zero >&2").out) == 900_000


def test_too_large_an_output_ends_the_program() -> None:
    with pytest.raises(OutputTooLong):
        shell("yes", longest=10_000)


def test_the_environment_is_exactly_the_one_given() -> None:
    names = {line.partition(b"=")[0] for line in shell("env").out.splitlines()}
    assert names <= {b"PATH", b"ONLY", b"PWD", b"SHLVL", b"_"}
    assert b"ONLY" in names


def test_the_deadline_ends_the_whole_group_even_if_it_ignores_a_polite_request(
    tmp_path: Path,
) -> None:
    pid_file = tmp_path / "pid"
    with pytest.raises(DeadlinePassed):
        shell(f"trap '' TERM; (trap '' TERM; sleep 600) & echo $! > {pid_file}; sleep 600", 0.3)
    wait_for_end(pid_file)


def test_a_helper_left_behind_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    finished = shell(f"sleep 600 & echo $! > {pid_file}; echo done")
    assert (finished.code, finished.out) == (0, b"done\n")
    wait_for_end(pid_file)


def test_a_program_that_is_missing_is_an_error_of_ours() -> None:
    with pytest.raises(SourceError, match="no-such-git could not be started"):
        run(["no-such-git"], environment={}, directory=Path("/"), deadline=Deadline.after(1))


@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        ("fatal: write error: No space left on device\nfatal: early EOF", DiskFull),
        ("fatal: transport 'ext' not allowed", SourceRefused),
        ("fatal: could not read Username for 'https://e': terminal prompts disabled", SourceDenied),
        ("fatal: Authentication failed for 'https://e/'", SourceDenied),
        (
            "fatal: unable to access 'https://e/': The requested URL returned error: 403",
            SourceDenied,
        ),
        ("git@e: Permission denied (publickey).\nfatal: Could not read from", SourceDenied),
        ("Host key verification failed.\nfatal: Could not read from remote", SourceDenied),
        ("ERROR: Repository not found.\nfatal: Could not read from remote", SourceNotFound),
        ("remote: Not Found\nfatal: repository 'https://e/r/' not found", SourceNotFound),
        ("fatal: '/etc' does not appear to be a git repository", SourceNotFound),
        (
            "fatal: unable to access 'https://e/': The requested URL returned error: 301",
            SourceNotFound,
        ),
        ("fatal: couldn't find remote ref refs/heads/gone", BranchGone),
        ("fatal: unable to access 'https://e/': Could not resolve host: e", SourceUnavailable),
        ("fatal: unable to access 'https://e/': Failed to connect to e port 1", SourceUnavailable),
        (
            "fatal: unable to access 'https://e/': The requested URL returned error: 503",
            SourceUnavailable,
        ),
        ("ssh: connect to host e port 22: Connection refused\nfatal: Could not", SourceUnavailable),
        (
            "fatal: unable to access 'https://e/': SSL certificate problem: expired",
            SourceUnavailable,
        ),
        ("error: RPC failed; curl 18 transfer closed\nfatal: early EOF", SourceUnavailable),
        ("fatal: bad object refs/concordance/head", SourceError),
        ("", SourceError),
    ],
)
def test_words_of_git_become_types(stderr: str, error: type[SourceError]) -> None:
    found = diagnose("fetch", URL, 128, stderr, ())
    assert type(found) is error
    assert found.message.startswith(f"git fetch of {URL} failed: ")
    assert isinstance(found, Retryable) == (error is SourceUnavailable)


def test_a_git_that_somebody_ended_is_worth_another_try() -> None:
    found = diagnose("fetch", URL, -9, "", ())
    assert type(found) is SourceUnavailable
    assert found.message == f"git fetch of {URL} failed: it was ended by signal 9"
    full = diagnose("fetch", URL, -9, "fatal: write error: No space left on device", ())
    assert not isinstance(full, Retryable)


def test_secrets_and_control_sequences_are_taken_out_of_words() -> None:
    stderr = "remote: \x1b[31mhello\nfatal: no way: https://u:pw@e/ s3cret czNjcmV0\n"
    found = diagnose("fetch", URL, 128, stderr, ("s3cret", "czNjcmV0"))
    assert found.message == f"git fetch of {URL} failed: fatal: no way: https://***@e/ *** ***"
    assert "\x1b" not in str(diagnose("fetch", URL, 1, "\x1b[2Jodd", ()))
    assert scrub("http://a@b http://c/d@e", ()) == "http://***@b http://c/d@e"


def test_nothing_of_the_environment_is_passed_on_but_what_is_needed() -> None:
    given = {
        "PATH": "/bin",
        "SSH_AUTH_SOCK": "/agent",
        "https_proxy": "http://proxy:1",
        "GIT_DIR": "/evil",
        "GIT_CONFIG_COUNT": "1",
        "GIT_SSH_COMMAND": "touch pwned",
        "GIT_TRACE_CURL": "1",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    policy = GitPolicy(allowed_schemes=("https", "ssh"), timeout_seconds=7)
    environment = git_environment(given, Path("/state/.home"), policy)
    assert environment["GIT_ALLOW_PROTOCOL"] == "https:ssh"
    assert environment["GIT_CONFIG_GLOBAL"] == "/state/.home/.gitconfig"
    assert environment["GIT_CONFIG_NOSYSTEM"] == "1"
    assert environment["GIT_SSH_COMMAND"].startswith("ssh -oBatchMode=yes ")
    assert environment["GIT_SSH_COMMAND"].endswith(" -oConnectTimeout=7")
    assert environment["SSH_AUTH_SOCK"] == "/agent"
    assert environment["https_proxy"] == "http://proxy:1"
    refused = {"GIT_DIR", "GIT_CONFIG_COUNT", "GIT_TRACE_CURL", "AWS_SECRET_ACCESS_KEY"}
    assert not refused & environment.keys()
