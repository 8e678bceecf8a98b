"""Git repositories, mirrored and read: the only door of this program to git.

What belongs here: asking a remote for its head, fetching one commit of one branch into a bare
repository, and reading commits out of it. What doesn't belong here: which files matter, and what
is done with their text. The parts: `git_policy` (what may be asked for), `git_environment`,
`git_process` (deadline), `git_diagnosis` (errors), `git_refs`, `git_folder` (lock, left-overs),
`git_objects`.

A mirror is `<slug>.git`, bare, without hooks and without a configured remote: the address is an
argument of each fetch and nothing of it is stored. It is made beside its place and moved there
when it is complete. A mirror that git rejects is replaced by a new one; `git gc --auto` runs after
a fetch, in the foreground and within the deadline, and prunes what was unreachable for two days.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from concordance.adapters.git_diagnosis import diagnose
from concordance.adapters.git_environment import (
    Credential,
    credential_environment,
    git_environment,
    secrets_of,
    write_configuration,
)
from concordance.adapters.git_folder import (
    discard,
    held,
    is_damaged,
    mark_damaged,
    storage_errors,
    sweep,
)
from concordance.adapters.git_objects import BlobUnreadable, TreeEntry, parse_tree
from concordance.adapters.git_objects import read_blobs as read_from_store
from concordance.adapters.git_policy import OBJECT_ID, GitPolicy, check_branch, check_url
from concordance.adapters.git_process import (
    Deadline,
    DeadlinePassed,
    Finished,
    OutputTooLong,
    Quota,
    run,
)
from concordance.adapters.git_refs import HEADS, RemoteHead, choose_head, parse_refs
from concordance.adapters.git_transfer import (
    FETCHED,
    Remote,
    Transfer,
    ended_in_time,
    too_many_files,
    within_quota,
)
from concordance.errors import (
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceUnavailable,
)
from concordance.settings import SLUG

__all__ = ["Credential", "GitMirror", "GitPolicy", "RemoteHead", "TreeEntry"]

MOST_FILES: Final = 200_000
_LONGEST_OUTPUT: Final = 1 << 26
# What a listing holds of a path on average, at the most; a path may have 4,096 bytes.
_BYTES_OF_A_PATH: Final = 512


class GitMirror:
    """Bare repositories under one directory, one for each project.

    `environment` is where PATH, the ssh agent, certificates and proxies are taken from. One
    mirror can be used by several threads and processes; fetches of one project wait in line.
    """

    def __init__(
        self, directory: Path, *, policy: GitPolicy, environment: Mapping[str, str]
    ) -> None:
        self._directory = directory.absolute()
        self._policy = policy
        self._given = dict(environment)

    def remote_head(
        self, url: str, branch: str | None, credential: Credential | None
    ) -> RemoteHead:
        """Ask the remote where a branch stands, or its default branch; nothing is stored.

        Raises:
            SourceRefused: The URL, the branch or the credential is refused; git was not started.
            BranchGone: There is no such branch, but there are others; the message names some.
            SourceUnavailable: The remote can't be reached (SourceTimeout: in time).
            SourceDenied: It wants other credentials.
            SourceNotFound: It has no such repository.
        """
        remote = self._remote(url, credential)
        if branch is not None:
            check_branch(branch)
        deadline = self._deadline()
        with storage_errors("git's private directory"):
            self._prepare()
        if branch is not None:
            # Only the branches are sent, which matters where there are 100,000 pull requests.
            only = ["ls-remote", "--heads", "--", url, HEADS + branch]
            refs = parse_refs(self._ask(only, remote, deadline).out)
            if HEADS + branch in refs:
                return RemoteHead(branch, refs[HEADS + branch])
        every = ["ls-remote", "--symref", "--", url, "HEAD", f"{HEADS}*"]
        refs = parse_refs(self._ask(every, remote, deadline).out)
        return choose_head(refs, branch, url)

    def fetch(self, slug: str, url: str, head: RemoteHead, credential: Credential | None) -> str:
        """Fetch the newest commit of a branch, alone, and return its id.

        A rewritten history is fetched like any other. What the mirror already has isn't sent.

        Raises:
            SourceRefused: The URL, the branch or the credential is refused; git was not started.
            SourceUnavailable: The remote can't be reached, or broke off (SourceTimeout: in time).
            SourceDenied: It wants other credentials.
            SourceNotFound: It has no such repository, or no commit.
            BranchGone: The branch is gone since `remote_head` was asked.
            DiskFull: There is no room; the mirror is as it was.
        """
        remote = self._remote(url, credential)
        if head.commit is None:
            raise SourceNotFound(f"{url} has no commit yet")
        if not OBJECT_ID.fullmatch(head.commit):
            raise SourceRefused("head holds a commit that is no object id")
        if head.branch is not None:
            check_branch(head.branch)
        transfer = Transfer(remote, head.branch, head.commit)
        deadline = self._deadline()
        with self._locked(slug, f"fetch of {url}", deadline):
            mirror = self._mirror(slug)
            discard(self._staging(slug))
            if not self._renew(mirror, transfer, deadline):
                self._make_anew(slug, transfer, deadline)
            commit = self._local(mirror, ["rev-parse", "--verify", FETCHED], deadline)
            # House-keeping can wait for the next fetch; this one has succeeded.
            with suppress(DeadlinePassed):
                self._run(["gc", "--auto", "--quiet"], deadline, mirror)
        return commit.out.decode("ascii").strip()

    def has_commit(self, slug: str, commit: str) -> bool:
        """Whether the mirror holds this commit with all of its files.

        Raises:
            SourceRefused: It is no commit id.
            SourceTimeout: Looking took longer than a fetch may.
        """
        _check_commit(commit)
        mirror = self._mirror(slug)
        if not mirror.is_dir() or is_damaged(mirror):
            return False
        deadline = self._deadline()
        with ended_in_time(f"looking for {commit} of {slug}", deadline):
            found = self._run(["rev-parse", "--verify", FETCHED], deadline, mirror)
            # Fetched last and not pruned, so it is complete; an older one has to be walked.
            if found.out.decode("ascii", "replace").strip() == commit:
                return self._run(["cat-file", "-e", commit], deadline, mirror).code == 0
            walk = ["rev-list", "--objects", "--quiet", f"{commit}^{{commit}}"]
            return self._run(walk, deadline, mirror).code == 0

    def list_tree(self, slug: str, commit: str, *, most: int = MOST_FILES) -> list[TreeEntry]:
        """Every path of a commit that is no folder, as bytes, in git's order.

        Raises:
            SourceRefused: It is no commit id, or has far more paths than `most`.
            SourceUnavailable: The mirror lacks it, or is damaged; fetching again repairs it.
            SourceTimeout: Reading took longer than a fetch may.
        """
        _check_commit(commit)
        mirror = self._existing(slug)
        deadline = self._deadline()
        command = ["ls-tree", "-r", "-z", "-l", "--full-tree", commit]
        longest = most * _BYTES_OF_A_PATH
        with ended_in_time(f"listing {commit} of {slug}", deadline):
            try:
                finished = self._run(command, deadline, mirror, longest_output=longest)
            except OutputTooLong:
                raise too_many_files(slug, most) from None
        if finished.code != 0:
            mark_damaged(mirror)
            error = diagnose("ls-tree", slug, finished.code, finished.err, ())
            raise SourceUnavailable(error.message, hint="It will be fetched anew")
        return parse_tree(finished.out)

    def read_blobs(self, slug: str, blob_ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The contents of these blobs, in this order; one at a time is held in memory.

        Raises:
            SourceRefused: One of them is no object id.
            SourceUnavailable: The mirror lacks one or is damaged; fetching again repairs it.
        """
        mirror = self._existing(slug)
        try:
            environment, memory = self._environment(mirror), self._policy.memory_bytes
            yield from read_from_store(mirror, environment, blob_ids, memory_bytes=memory)
        except BlobUnreadable as error:
            mark_damaged(mirror)
            raise SourceUnavailable(
                f"the mirror of {slug} can't give blob {error}",
                hint="It will be fetched anew; reading it may also take more memory than "
                "CONCORDANCE_GIT_MEMORY_BYTES allows",
            ) from error

    def remove(self, slug: str) -> None:
        """Remove a project's mirror; where there is none, nothing happens.

        Raises:
            SourceTimeout: Somebody was fetching it all the time.
            SourceError: Its files can't be removed.
        """
        with self._locked(slug, f"removal of {slug}", self._deadline()):
            discard(self._mirror(slug))
            discard(self._staging(slug))
            discard(self._lock(slug))

    # --- fetching --------------------------------------------------------------------------

    def _renew(self, mirror: Path, transfer: Transfer, deadline: Deadline) -> bool:
        """Fetch into the mirror that is there; False where it has to be made anew."""
        if not mirror.is_dir() or is_damaged(mirror):
            return False
        sweep(mirror)
        about = ["rev-parse", "--is-bare-repository", "--show-object-format"]
        found = self._run(about, deadline, mirror)
        if found.code != 0 or found.out.split() != [b"true", transfer.object_format.encode()]:
            return False
        try:
            self._transfer(mirror, transfer, deadline)
        except SourceError as error:
            # At once: what was half fetched may be what fills the disk.
            sweep(mirror)
            if self._is_at_fault(mirror, error, deadline):
                return False
            raise
        return True

    def _is_at_fault(self, mirror: Path, error: SourceError, deadline: Deadline) -> bool:
        if type(error) is SourceError:
            # Words that we don't know: worth reading every object, for the mirror may be damaged.
            return self._run(["fsck", "--full", "--no-dangling"], deadline, mirror).code != 0
        if type(error) is SourceUnavailable:
            # A broken mirror ends a fetch with words of a broken connection, too.
            walk = ["rev-list", "--objects", "--quiet", "--all"]
            return self._run(walk, deadline, mirror).code != 0
        return False

    def _make_anew(self, slug: str, transfer: Transfer, deadline: Deadline) -> None:
        staging, mirror = self._staging(slug), self._mirror(slug)
        try:
            init = ["init", "--bare", "--quiet", "--template=", "--initial-branch=main"]
            form = f"--object-format={transfer.object_format}"
            self._local(None, [*init, form, "--", str(staging)], deadline)
            self._transfer(staging, transfer, deadline)
            discard(mirror)
            staging.rename(mirror)
        finally:
            discard(staging)

    def _transfer(self, repository: Path, transfer: Transfer, deadline: Deadline) -> None:
        options = ["--depth=1", "--no-tags", "--force", "--quiet", "--no-write-fetch-head"]
        more = ["--no-recurse-submodules", "--no-auto-maintenance", "--refmap="]
        command = ["fetch", *options, *more, "--", transfer.remote.url, transfer.refspec]
        self._ask_for_objects(command, transfer.remote, deadline, repository)

    # --- running git -----------------------------------------------------------------------

    def _ask_for_objects(
        self, arguments: list[str], remote: Remote, deadline: Deadline, repository: Path
    ) -> None:
        """Fetch, and bring no more than one fetch may."""
        with within_quota(repository, remote.url, self._policy.fetch_bytes) as quota:
            self._ask(arguments, remote, deadline, repository, quota)

    def _ask(
        self,
        arguments: list[str],
        remote: Remote,
        deadline: Deadline,
        repository: Path | None = None,
        quota: Quota | None = None,
    ) -> Finished:
        with ended_in_time(f"git {arguments[0]} of {remote.url}", deadline):
            finished = self._run(arguments, deadline, repository, remote.environment, quota=quota)
        if finished.code != 0:
            words, secrets = finished.err, remote.secrets
            raise diagnose(arguments[0], remote.url, finished.code, words, secrets)
        return finished

    def _local(self, repository: Path | None, arguments: list[str], deadline: Deadline) -> Finished:
        finished = self._run(arguments, deadline, repository)
        if finished.code != 0:
            where = str(repository or self._directory)
            raise diagnose(arguments[0], where, finished.code, finished.err, ())
        return finished

    def _run(  # noqa: PLR0913 - what may be limited
        self,
        arguments: Sequence[str],
        deadline: Deadline,
        repository: Path | None,
        extra: Mapping[str, str] | None = None,
        *,
        longest_output: int = _LONGEST_OUTPUT,
        quota: Quota | None = None,
    ) -> Finished:
        return run(
            ["git", *arguments],
            environment=self._environment(repository) | dict(extra or {}),
            directory=self._home,
            deadline=deadline,
            longest_output=longest_output,
            memory_bytes=self._policy.memory_bytes,
            quota=quota,
        )

    def _environment(self, repository: Path | None) -> dict[str, str]:
        return git_environment(self._given, self._home, self._policy, repository)

    def _remote(self, url: str, credential: Credential | None) -> Remote:
        check_url(url, self._policy.allowed_schemes)
        return Remote(url, credential_environment(url, credential), secrets_of(credential))

    def _deadline(self) -> Deadline:
        return Deadline.after(self._policy.timeout_seconds)

    # --- places ----------------------------------------------------------------------------

    @contextmanager
    def _locked(self, slug: str, what: str, deadline: Deadline) -> Iterator[None]:
        lock = self._lock(slug)
        with storage_errors(what), ended_in_time(what, deadline):
            self._prepare()
            with held(lock, deadline):
                yield

    def _prepare(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_configuration(self._home)

    @property
    def _home(self) -> Path:
        return self._directory / ".home"

    def _mirror(self, slug: str) -> Path:
        return self._place(slug, ".git")

    def _staging(self, slug: str) -> Path:
        return self._place(slug, ".new")

    def _lock(self, slug: str) -> Path:
        return self._place(slug, ".lock")

    def _place(self, slug: str, suffix: str) -> Path:
        if not SLUG.fullmatch(slug):
            raise SourceRefused(f"slug {slug!r} can't name a folder")
        return self._directory / f"{slug}{suffix}"

    def _existing(self, slug: str) -> Path:
        mirror = self._mirror(slug)
        if not mirror.is_dir():
            raise SourceUnavailable(f"{slug} has no mirror", hint="It has to be fetched first")
        return mirror


def _check_commit(commit: str) -> None:
    if not OBJECT_ID.fullmatch(commit):
        raise SourceRefused("commit is no object id")
