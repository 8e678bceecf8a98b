"""The commits of a project's branch, without their files: what was done, and when.

What belongs here: a second bare repository beside a mirror, `<slug>.history`, with commits of the
last years. A remote that can leave out files is asked to. The mirror itself stays one commit deep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from concordance.adapters.git import Credential, GitMirror, RemoteHead
from concordance.adapters.git_folder import discard
from concordance.adapters.git_policy import OBJECT_ID, check_branch
from concordance.adapters.git_refs import HEADS
from concordance.errors import SourceError, SourceNotFound, SourceUnavailable

_HISTORY: Final = "refs/concordance/history"
_SHA1_DIGITS: Final = 40
_SECONDS: Final = re.compile(r"[0-9]{1,11}")  # what has more digits is no time


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a branch, and when it was made."""

    id: str
    committed_at: datetime


class HistoryMirror(GitMirror):
    """A mirror that knows the commits of the branch as well."""

    def fetch_history(
        self,
        slug: str,
        url: str,
        head: RemoteHead,
        credential: Credential | None,
        *,
        since: datetime,
    ) -> None:
        """Fetch the commits of a branch that were made since a time.

        Raises:
            SourceError: The remote refuses, is not there, or has no commit since then; what was
                fetched before is gone, and is fetched anew next time.
        """
        remote = self._remote(url, credential)
        if head.commit is None or head.branch is None:
            raise SourceNotFound(f"{url} has no branch with a commit")
        check_branch(head.branch)
        deadline = self._deadline()
        with self._locked(slug, f"fetch of the history of {url}", deadline):
            history = self._history(slug)
            try:
                if not history.is_dir():
                    form = "sha1" if len(head.commit) == _SHA1_DIGITS else "sha256"
                    init = ["init", "--bare", "--quiet", "--template=", f"--object-format={form}"]
                    self._local(None, [*init, "--", str(history)], deadline)
                only = ["--filter=tree:0", f"--shallow-since={since:%Y-%m-%dT%H:%M:%SZ}"]
                options = ["--no-tags", "--force", "--quiet", "--no-write-fetch-head", "--refmap="]
                more = ["--no-recurse-submodules", "--no-auto-maintenance"]
                refspec = f"+{HEADS}{head.branch}:{_HISTORY}"
                command = ["fetch", *only, *options, *more, "--", url, refspec]
                self._ask_for_objects(command, remote, deadline, history)
            except SourceError:
                discard(history)
                raise

    def history(self, slug: str) -> list[Commit]:
        """The commits that were fetched, newest first; none where there are none.

        Raises:
            SourceUnavailable: They can't be read.
        """
        history = self._history(slug)
        if not history.is_dir():
            return []
        deadline = self._deadline()
        with self._locked(slug, f"history of {slug}", deadline):
            found = self._run(["log", "--format=%H %ct", _HISTORY], deadline, history)
            if found.code != 0:
                if found.code > 0:  # else somebody ended git, which says nothing of the folder
                    discard(history)
                raise SourceUnavailable(f"the history of {slug} can't be read")
        commits = []
        for line in found.out.decode("ascii", "replace").splitlines():
            name, _, seconds = line.partition(" ")
            if OBJECT_ID.fullmatch(name) and _SECONDS.fullmatch(seconds):
                commits.append(Commit(name, datetime.fromtimestamp(int(seconds), UTC)))
        return commits

    def remove(self, slug: str) -> None:
        """Remove a project's mirror and history; see `GitMirror.remove`."""
        discard(self._history(slug))
        super().remove(slug)

    def _history(self, slug: str) -> Path:
        return self._place(slug, ".history")
