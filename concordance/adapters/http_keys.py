"""The keys of the HTTP interface: random to begin with, and kept as their hashes.

What belongs here: making one, and reading the file that lists them. Who may do what with a key is
`concordance.http`'s matter.
"""

from __future__ import annotations

import hashlib
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from concordance.errors import SettingsError
from concordance.settings import HttpKey, LoginSource

# What a scanner of secrets, and a person, knows one by.
PREFIX = "concordance_"
_BYTES = 32


def new_key() -> str:
    """A key that nobody can guess."""
    return f"{PREFIX}{secrets.token_urlsafe(_BYTES)}"


def digest_of(key: str) -> str:
    """The hash by which a key is kept; a random one needs no salt."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()


def read_keys(path: Path) -> tuple[HttpKey, ...]:
    """The keys that a file lists.

    Raises:
        SettingsError: The file is missing, malformed or contradicts itself.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from error
    except OSError as error:
        raise SettingsError(
            f"{path} can't be read: {error.strerror}",
            hint="Make it with what 'concordance keys new NAME' prints, or unset "
            "CONCORDANCE_HTTP_KEYS_FILE",
        ) from error
    entries = tables.get("keys")
    if tables.keys() - {"keys"} or not isinstance(entries, list) or not entries:
        raise SettingsError(
            f"{path} lists no keys, or has another table", hint="Write [[keys]], once a key"
        )
    keys = tuple(_read(entry, number, path) for number, entry in enumerate(entries, 1))
    for field in ("name", "sha256"):
        if len({getattr(key, field) for key in keys}) < len(keys):
            raise SettingsError(f"{path}: two keys have the same '{field}'")
    return keys


def read_login(environ: Mapping[str, str], key: HttpKey) -> SecretStr:
    """The database URL that a key's entry names, from its environment variable.

    Raises:
        SettingsError: The variable is not set.
    """
    value = environ.get(key.login.env or "")
    if not value:
        raise SettingsError(
            f"the environment variable {key.login.env}, which holds the database URL of the key "
            f"'{key.name}', is not set",
            hint="Set it where 'concordance http' starts, or name another one under 'login'",
        )
    return SecretStr(value)


def entry_of(name: str, digest: str, login: LoginSource) -> str:
    """What the file has to list for a key."""
    named = f'env = "{login.env}"' if login.env else f'secret_block = "{login.secret_block}"'
    return f'[[keys]]\nname = "{name}"\nsha256 = "{digest}"\nlogin = {{ {named} }}\n'


def _read(entry: Any, number: int, path: Path) -> HttpKey:
    try:
        return HttpKey.model_validate(entry)
    except ValidationError as error:
        # The value itself stays out: it may be a key, or an address with a password.
        fault = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in fault["loc"])
        raise SettingsError(
            f"{path}: [[keys]] number {number}{f', key {key!r}' if key else ''}: "
            f"{fault['msg'].removeprefix('Value error, ')}"
        ) from None
