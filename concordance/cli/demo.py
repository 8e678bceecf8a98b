"""`concordance demo`: the main job on two small projects, with nothing set up before.

What belongs here: making the second project, running the job as anybody would, and showing what it
found. The projects and the state directory lie in one folder, apart from any other index.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path

from cyclopts import App
from rich.console import Console
from rich.text import Text

from concordance.adapters.environment import (
    force_process_variables,
    git_environment,
    process_environment,
)
from concordance.cli import running
from concordance.cli.asking import search
from concordance.cli.orchestration import project_root
from concordance.errors import SettingsError, SourceError

app = App()
OUT = Console()

QUESTIONS = (
    "what happens when the embedding provider is down?",
    "why was the message broker replaced?",
    "why did Hooge Sands give false alarms?",
)

# The same commit in every demo, so that its citations can be compared.
_COMMITTED = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "Beacon"),
        ("EMAIL", "beacon@example.org"),
        ("DATE", "2026-02-20T09:00:00Z"),
    )
}

_PROJECTS = """\
# The demo's own projects; yours go into a projects.toml of your own.
[settings]
allowed_schemes = ["https", "ssh", "file"]

[[projects]]
slug = "concordance"
path = "{root}"

[[projects]]
slug = "beacon"
path = "beacon"
sessions = [{{ path = "sessions" }}]
"""

_ACTIVATE = """\
# Use the demo's index in this shell:  source {folder}/activate
export CONCORDANCE_HOME={home}
export CONCORDANCE_PROJECTS_FILE={projects}
export PATH={bin}:"$PATH"
# For Prefect's own command: the server that the demo runs are on, and no word to anybody else.
export DO_NOT_TRACK=1
export PREFECT_SERVER_ANALYTICS_ENABLED=false
export PREFECT_API_URL={api}
"""


@app.command
def demo(folder: Path = Path(".demo")) -> int:
    """Index this project's own docs and a small second project, and answer three questions."""
    root = project_root()
    folder = folder.absolute()
    try:
        _make(folder, root)
    except OSError as error:
        raise SettingsError(
            f"the demo can't be made in {folder}: {error.strerror}",
            hint="Name another folder: 'concordance demo FOLDER'",
        ) from error
    force_process_variables(
        {
            "CONCORDANCE_HOME": str(folder / "home"),
            "CONCORDANCE_PROJECTS_FILE": str(folder / "projects.toml"),
        }
    )
    code = running.reindex()
    write_activate(folder, process_environment().get("PREFECT_API_URL", ""))
    for question in QUESTIONS:
        OUT.print()
        OUT.rule(Text(question, style="bold"), align="left")
        search(question, top_k=3)
    _say_what_next(folder)
    return code


def _make(folder: Path, root: Path) -> None:
    """The second project as a git repository, its session log, and the settings for both."""
    folder.mkdir(parents=True, exist_ok=True)
    with as_file(files("concordance.cli") / "demo_files") as source:
        for name in ("beacon", "sessions"):
            shutil.copytree(source / name, folder / name, dirs_exist_ok=True)
    repository = folder / "beacon"
    if not (repository / ".git").exists():
        _git(repository, "init", "--quiet", "--initial-branch", "main")
    _git(repository, "add", "--all")
    if _git(repository, "status", "--porcelain"):
        _git(repository, "commit", "--quiet", "--message", "Beacon, as it is shown")
    escaped = str(root).replace("\\", "\\\\").replace('"', '\\"')
    projects = folder / "projects.toml"
    if not projects.exists():  # a person may have added projects since
        projects.write_text(_PROJECTS.format(root=escaped), encoding="utf-8")


def write_activate(folder: Path, api: str) -> None:
    """What a shell reads to use the demo's index, and its Prefect server."""
    (folder / "activate").write_text(
        _ACTIVATE.format(
            folder=shlex.quote(str(folder)),
            home=shlex.quote(str(folder / "home")),
            projects=shlex.quote(str(folder / "projects.toml")),
            bin=shlex.quote(str(Path(sys.executable).parent)),
            api=shlex.quote(api),
        ),
        encoding="utf-8",
    )


def _git(repository: Path, *arguments: str) -> str:
    # GIT_DIR and its like would send these commands into another repository; tokens aren't theirs.
    mine = process_environment()
    environment = git_environment(mine) | {"HOME": mine.get("HOME", "/")} | _COMMITTED
    environment["GIT_CONFIG_NOSYSTEM"] = "1"
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments, no shell
            ["git", "-c", "commit.gpgsign=false", *arguments],  # noqa: S607 - the user's own git
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise SourceError(
            f"the demo's project could not be made: git {arguments[0]} failed",
            hint="Check that git is installed and that the folder can be written",
        ) from error
    return done.stdout.strip()


def _say_what_next(folder: Path) -> None:
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    OUT.print()
    OUT.rule(Text("What to try next", style="bold"), align="left")
    for command, what in (
        (f"source {shown}/activate", "use the demo's index in this shell"),
        ("concordance search 'restore a backup'", "ask anything; --json for scripts"),
        ("concordance ui", "the address of the Prefect UI, with the run you just saw"),
        ("concordance explain beacon docs/operations.md", "why a file is or isn't in the index"),
        ("concordance doctor", "what this installation is made of"),
        ("concordance down", "stop the Prefect server that the demo started"),
    ):
        OUT.print(Text(f"  {command:<48}", style="cyan") + Text(what, style="dim"), soft_wrap=True)
    OUT.print(Text("\nYour own projects: see 'Add a project' in README.md.", style="dim"))
