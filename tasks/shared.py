"""What the tasks of one process share: the opened index, and tokens from Secret blocks.

Live objects are never task arguments; a task asks for them here.
"""

from __future__ import annotations

from typing import cast

from prefect.blocks.system import Secret
from pydantic import SecretStr

from concordance import sharing
from concordance.adapters.environment import process_environment, read_configuration
from concordance.adapters.git_environment import Credential
from concordance.errors import SettingsError
from concordance.index import Index
from concordance.settings import Configuration, Project
from concordance.sharing import adopt_index, close_shared

__all__ = [
    "adopt_index",
    "close_shared",
    "credential_of",
    "load_secret",
    "shared_configuration",
    "shared_index",
]


def shared_index() -> Index:
    """This process's index, opened on first use and closed at exit."""
    return sharing.shared_index(_open)


def shared_configuration() -> Configuration:
    """The settings and projects of this process, for which no index need be open."""
    opened = sharing.opened_index()
    return read_configuration(process_environment()) if opened is None else opened.configuration


def _open() -> Index:
    """This process's index, with keys from Secret blocks where they are named."""
    environ = process_environment()
    block = read_configuration(environ).settings.reranker_secret_block
    if block is not None and not environ.get("CONCORDANCE_RERANKER_KEY"):
        environ["CONCORDANCE_RERANKER_KEY"] = load_secret(block, "the reranker").get_secret_value()
    return Index.open(environment=environ)


def load_secret(block: str, purpose: str) -> SecretStr:
    """The value of a Prefect Secret block.

    Raises:
        SettingsError: There is no such block.
    """
    try:
        # In a task's thread there is no event loop, so the call is made at once.
        found = cast("Secret[str]", Secret.load(block))
    except ValueError as error:
        raise SettingsError(
            f"there is no Prefect Secret block '{block}' for {purpose}",
            hint="Make it on the Blocks page of the Prefect UI",
        ) from error
    return SecretStr(found.get())


def credential_of(project: Project) -> Credential | None:
    """A project's token, from its Secret block or its environment variable.

    Raises:
        SettingsError: There is no such block or variable.
    """
    given = project.credentials
    if given is None or given.secret_block is None:
        return shared_index().credential(project)
    return Credential(given.username, load_secret(given.secret_block, f"'{project.slug}'"))
