"""Which git this machine has."""

from __future__ import annotations

import re
import shutil
import subprocess

from concordance.errors import SourceError


def git_version(path: str) -> tuple[int, ...]:
    """The version of the first `git` on a search path, as numbers.

    Raises:
        SourceError: There is no git, or it does not run.
    """
    program = shutil.which("git", path=path)
    if program is None:
        raise SourceError("there is no git on the path", hint="Install git 2.31 or newer")
    try:
        said = subprocess.run(  # noqa: S603 - found on the user's own path, no shell
            [program, "--version"],
            env={"PATH": path, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise SourceError(f"git does not run: {error}", hint="Install git 2.31 or newer") from error
    return tuple(int(part) for part in re.findall(r"\d+", said)[:3])
