"""Who asks: keys, each bound to the index as its database login sees it.

What belongs here: telling callers apart. What a login may see is decided by the database.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import SecretStr

from concordance.adapters.http_keys import digest_of
from concordance.errors import SettingsError
from concordance.index import Index
from concordance.settings import Configuration, HttpKey, Settings


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may ask, and by which index."""

    name: str
    index: Index
    may_reindex: bool
    # By a key, and so by a login that reads one tenant.
    bound: bool
    may_measure: bool = False


class Callers:
    """All who may ask: the bearers of keys, or without any, everybody on this machine."""

    def __init__(self, keyed: Mapping[str, Caller], anybody: Caller | None = None) -> None:
        self._keyed = dict(keyed)
        self._anybody = anybody

    @property
    def need_keys(self) -> bool:
        """Whether a key is asked for."""
        return self._anybody is None

    def find(self, authorization: str | None) -> Caller | None:
        """Whose key stands in the header; takes as long for each key as for none."""
        if self._anybody is not None:
            return self._anybody
        scheme, _, key = (authorization or "").partition(" ")
        digest = digest_of(key.strip())
        found = None
        for known, caller in self._keyed.items():
            if hmac.compare_digest(known, digest):
                found = caller
        return found if scheme.lower() == "bearer" else None

    def close(self) -> None:
        """Close every index once."""
        callers = [*self._keyed.values(), *([self._anybody] if self._anybody else [])]
        for index in {id(caller.index): caller.index for caller in callers}.values():
            index.close()


def open_callers(
    configuration: Configuration,
    environment: Mapping[str, str],
    keys: Sequence[HttpKey],
    logins: Mapping[str, SecretStr],
) -> Callers:
    """Open an index for each login, or without keys, the one that the settings name.

    Args:
        configuration: Settings and projects of this installation.
        environment: This process's environment.
        keys: Those of the keys file.
        logins: The database URL of each, by the key's name.

    Raises:
        SettingsError: A key's login reads more than one tenant.
        DatabaseError: Postgres can't be reached, or is not what is needed.
    """
    if not keys:
        index = Index.open(configuration, environment=environment)
        return Callers(
            {}, Caller("anybody", index, may_reindex=True, bound=False, may_measure=True)
        )
    opened: dict[str, Index] = {}
    try:
        keyed = {}
        for key in keys:
            url = logins[key.name]
            index = opened.get(url.get_secret_value()) or Index.open(
                _of_login(configuration, url), environment=environment
            )
            opened[url.get_secret_value()] = index
            keyed[key.sha256] = Caller(
                key.name,
                _of_one_tenant(key, index),
                key.reindex,
                bound=True,
                may_measure=key.metrics,
            )
    except BaseException:
        for index in opened.values():
            index.close()
        raise
    return Callers(keyed)


def _of_one_tenant(key: HttpKey, index: Index) -> Index:
    if not index.reads_one_tenant:
        raise SettingsError(
            f"the login of the key '{key.name}' is no reader's: it sees every tenant",
            hint="Bind one by 'concordance tenants grant LOGIN --tenant NAME'",
        )
    return index


def _of_login(configuration: Configuration, url: SecretStr) -> Configuration:
    """The same settings for a login. It knows of no configured project: they are of all tenants."""
    settings = configuration.settings
    given = {name: getattr(settings, name) for name in settings.model_fields_set - {"tenant"}}
    return Configuration(settings=Settings.model_validate(given | {"database_url": url}))
