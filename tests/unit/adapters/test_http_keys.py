"""The file that lists keys: what it may hold, and that it holds no key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from concordance.adapters.http_keys import digest_of, entry_of, new_key, read_keys, read_login
from concordance.errors import SettingsError
from concordance.settings import LoginSource

DIGEST = digest_of("a key")
ENTRY = f'[[keys]]\nname = "a"\nsha256 = "{DIGEST}"\nlogin = {{ env = "A_URL" }}\n'


def test_the_entry_of_a_new_key_is_read_back(tmp_path: Path) -> None:
    key = new_key()
    file = tmp_path / "keys.toml"
    logins = [LoginSource(env="REPORTS_URL"), LoginSource(secret_block="vault-url")]
    entries = [
        entry_of("reports", digest_of(key), logins[0]),
        entry_of("vault", digest_of(new_key()), logins[1]),
    ]
    file.write_text("\n".join(entries))
    reports, vault = read_keys(file)
    assert (reports.name, reports.sha256, reports.reindex) == ("reports", digest_of(key), False)
    assert [reports.login, vault.login] == logins
    assert key not in file.read_text()
    assert re.fullmatch(r"concordance_[\w-]{43}", key)
    assert len({new_key() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lists no keys"),
        ("keys = []", "lists no keys"),
        (f"{ENTRY}[more]\n", "another table"),
        ("keys = [", "is not TOML"),
        (ENTRY.replace(DIGEST, "the-key-itself"), "'sha256'"),
        (ENTRY.replace('name = "a"', 'name = "A b"'), "'name'"),
        (ENTRY.replace("A_URL", "postgresql://ada:the-key-itself@db"), "'login.env'"),
        (ENTRY.replace('env = "A_URL"', ""), "exactly one of 'env'"),
        (f"{ENTRY}key = 'the-key-itself'\n", "'key'"),
        (ENTRY + ENTRY.replace('"a"', '"b"'), "the same 'sha256'"),
        (ENTRY + ENTRY.replace(DIGEST, digest_of("b")), "the same 'name'"),
        ("keys = [1]", "number 1"),
    ],
)
def test_what_is_wrong_is_named_without_its_value(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=said) as raised:
        read_keys(file)
    assert "the-key-itself" not in str(raised.value)


def test_a_file_or_a_variable_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml can't be read"):
        read_keys(tmp_path / "nowhere.toml")
    file = tmp_path / "keys.toml"
    file.write_text(ENTRY)
    (key,) = read_keys(file)
    assert read_login({"A_URL": "postgresql://x"}, key).get_secret_value() == "postgresql://x"
    with pytest.raises(SettingsError, match=r"variable A_URL, .* the key 'a', is not set"):
        read_login({}, key)
