"""Templates and manifests, judged by schemas and by the packages of the workers that read them.

Run by `make manifests`, which installs those packages; none of them is needed to run the program.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

PLACE = Path(__file__).parents[2] / "deployments"
KUBERNETES = sorted((PLACE / "kubernetes").glob("*.yaml"))
VERSIONS = ("1.32", "1.37")
URL = "postgresql://somebody@db/concordance"
CONFIGURATIONS = {
    "process": ("prefect.workers.process", "ProcessJobConfiguration"),
    "docker": ("prefect_docker.worker", "DockerWorkerJobConfiguration"),
    "kubernetes": ("prefect_kubernetes.worker", "KubernetesWorkerJobConfiguration"),
}
GIVEN = {"env": {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "20"}}


def program(name: str, *arguments: str) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name(name)), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Blocks:
    """Prefect's client, as far as a template asks it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def read_block_document_by_name(self, *, name: str, block_type_slug: str) -> Any:
        self.asked.append((block_type_slug, name))

        class Document:
            data = {"value": URL}  # noqa: RUF012 - as the client gives it
            block_type = type("Type", (), {"slug": "secret"})

        return Document


def configured(kind: str) -> tuple[Any, Blocks]:
    """What a worker makes of the template for one run."""
    module, name = CONFIGURATIONS[kind]
    template = json.loads((PLACE / "pools" / f"{kind}.json").read_text("utf-8"))
    made = getattr(importlib.import_module(module), name)
    blocks = Blocks()
    return asyncio.run(made.from_template_and_values(template, GIVEN, client=blocks)), blocks


def test_the_compose_file_follows_its_specification() -> None:
    program(
        "check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(PLACE / "compose.yaml")
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_follow_the_schemas_of_kubernetes(version: str) -> None:
    program("kubernetes-validate", "-k", version, "--strict", *map(str, KUBERNETES))


@pytest.mark.parametrize("kind", ["process", "docker"])
def test_a_worker_reads_the_template_and_adds_the_variables_of_the_deployment(kind: str) -> None:
    made, _ = configured(kind)
    assert made.env["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == "20"
    assert made.env["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"


def test_a_container_gets_the_address_of_the_database_from_a_block() -> None:
    made, blocks = configured("docker")
    assert blocks.asked == [("secret", "concordance-database-url")]
    assert made.env["CONCORDANCE_DATABASE_URL"] == URL
    assert made.container_create_kwargs["cap_drop"] == ["ALL"]


def test_a_job_keeps_its_secret_beside_the_variables_of_the_run(tmp_path: Path) -> None:
    made, _ = configured("kubernetes")
    made.name = "reindex"
    made._populate_env_in_manifest()
    (container,) = made.job_manifest["spec"]["template"]["spec"]["containers"]
    assert {one["name"] for one in container["env"]} == {
        "CONCORDANCE_DATABASE_URL",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY",
    }
    # Prefect wants these two where Kubernetes knows them for jobs alone, and does without.
    pod = made.job_manifest["spec"]["template"]["spec"]
    assert (pod.pop("parallelism"), pod.pop("completions")) == (1, 1)
    made.job_manifest["metadata"]["name"] = "reindex"  # the tool knows no generated ones
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(made.job_manifest), encoding="utf-8")
    program("kubernetes-validate", "-k", VERSIONS[-1], "--strict", str(file))


def test_prometheus_can_read_every_alert() -> None:
    parser = importlib.import_module("promql_parser")
    groups = yaml.safe_load((PLACE / "alerts.yaml").read_text("utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 5
    for rule in rules:
        parser.parse(rule["expr"])
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
