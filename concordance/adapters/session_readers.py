"""Readers of session logs: the program's own, and those that other packages bring.

What belongs here: looking up the entry points of `GROUP`. What a reader is stands in
`concordance.sessions.reader`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points

from concordance.errors import SettingsError
from concordance.sessions.reader import GROUP, Reader
from concordance.sessions.registry import BUILT_IN, by_name


def known_readers() -> Mapping[str, Reader]:
    """All readers by name.

    Raises:
        SettingsError: An installed package names a reader that can't be loaded, is none, or has
            the name of one of the program's own.
    """
    others = []
    for point in entry_points(group=GROUP):
        try:
            found = point.load()
        except (ImportError, AttributeError) as error:
            raise SettingsError(
                f"the session reader '{point.name}' ({point.value}) can't be loaded: "
                f"{type(error).__name__}: {error}",
                hint="Mend or remove the package that brings it",
            ) from error
        if not isinstance(found, Reader):
            raise SettingsError(
                f"the session reader '{point.name}' ({point.value}) is no Reader",
                hint="The entry point has to name a concordance.sessions.reader.Reader",
            )
        if found.name in {reader.name for reader in BUILT_IN}:
            raise SettingsError(
                f"the session reader '{point.value}' has the name '{found.name}', which is taken",
                hint="Give it another name",
            )
        others.append(found)
    return by_name(others)


def check_format(name: str, readers: Mapping[str, Reader]) -> None:
    """Make sure that a format which projects.toml names is known.

    Raises:
        SettingsError: It is not.
    """
    if name not in readers:
        raise SettingsError(
            f"there is no session reader '{name}'",
            hint=f"Known are {', '.join(sorted(readers))}",
        )
