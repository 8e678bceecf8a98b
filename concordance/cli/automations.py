"""Commands about what the Prefect server watches while nobody looks."""

from __future__ import annotations

from cyclopts import App
from rich.console import Console
from rich.text import Text

from concordance.adapters.environment import process_environment, read_configuration
from concordance.cli import orchestration
from concordance.cli.printing import print_json
from concordance.cli.running import Json, connect
from concordance.escaping import safe

app = App(name="automations", help="What the Prefect server watches while nobody looks.")
OUT = Console()


@app.command
def deploy(*, json: Json = False) -> int:
    """Bring deployments/automations.yaml to the Prefect server; doing it again changes nothing.

    Where CONCORDANCE_NOTIFICATION_BLOCK names a notification block, they notify through it.
    """
    configuration = read_configuration(process_environment(), need_projects=False)
    connect(configuration, verbose=False)
    done = orchestration.deploy_automations(configuration, orchestration.project_root())
    if json:
        print_json({"automations": done})
        return 0
    for name, change in done.items():
        OUT.print(Text(f"{safe(name)}: {change}"))
    if configuration.settings.notification_block is None:
        said = "They notify nobody: CONCORDANCE_NOTIFICATION_BLOCK is not set."
        OUT.print(Text(said, style="yellow"))
    return 0
