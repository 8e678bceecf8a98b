"""Automations of `deployments/automations.yaml`, brought to a Prefect server as often as one likes.

    python -m flows.automations FILE [NOTIFICATION_BLOCK]

What belongs here: comparing what the server has with what the file says. An automation is known by
its name; one that somebody switched off in the UI stays off.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import yaml  # type: ignore[import-untyped]
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectNotFound

from concordance.errors import SettingsError

Change = Literal["created", "updated", "unchanged"]


def deploy_automations(file: Path, notification_block: str | None = None) -> dict[str, Change]:
    """Make the server's automations those of a file; returns what became of each, by name.

    Raises:
        SettingsError: There is no such notification block.
    """
    described = yaml.safe_load(file.read_text(encoding="utf-8"))["automations"]
    with get_client(sync_client=True) as client:
        block = None if notification_block is None else _block(client, notification_block)
        return {one["name"]: _deploy(client, _automation(one, block)) for one in described}


def _block(client: SyncPrefectClient, named: str) -> str:
    kind, _, name = named.partition("/")
    try:
        return str(client.read_block_document_by_name(name, kind).id)
    except ObjectNotFound as error:
        raise SettingsError(
            f"there is no Prefect block '{named}' to notify by",
            hint="Make it on the Blocks page of the Prefect UI, or unset "
            "CONCORDANCE_NOTIFICATION_BLOCK",
        ) from error


def _automation(described: dict[str, Any], block: str | None) -> AutomationCore:
    actions = list(described.get("actions", ()))
    told = described.get("notification")
    if told is not None and block is not None:
        actions.append({"type": "send-notification", "block_document_id": block} | told)
    kept = {key: value for key, value in described.items() if key != "notification"}
    # An automation without an action is refused; that it fired can be read all the same.
    return AutomationCore.model_validate(
        kept | {"actions": actions or [{"type": "do-nothing"}], "tags": ["concordance"]}
    )


def _deploy(client: SyncPrefectClient, wanted: AutomationCore) -> Change:
    found = client.read_automations_by_name(wanted.name)
    if not found:
        client.create_automation(wanted)
        return "created"
    kept, *doubles = found
    for double in doubles:
        client.delete_automation(double.id)
    wanted.enabled = kept.enabled
    # What is written anew forgets whom it has told already.
    if _plain(kept) == _plain(wanted):
        return "unchanged"
    client.update_automation(kept.id, wanted)
    return "updated"


def _plain(automation: AutomationCore) -> dict[str, Any]:
    # What is not given is made equal by going through the same model once more.
    again = AutomationCore.model_validate(automation.model_dump(mode="json"))
    return again.model_dump(mode="json", exclude={"owner_resource"})


def main(arguments: Sequence[str]) -> None:
    """Deploy a file and print what became of each automation, as JSON."""
    file, *block = arguments
    try:
        done = deploy_automations(Path(file), *block)
    except SettingsError as error:
        sys.exit(str(error))
    print(json.dumps(done))  # noqa: T201 - it is the output


if __name__ == "__main__":
    main(sys.argv[1:])
