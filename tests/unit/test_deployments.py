"""What stands in `deployments/` agrees with the program, and with itself.

What a schema says of it, and what the workers' own packages do, is looked at by `make manifests`.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.settings import Settings as PrefectSettings
from prefect.settings.legacy import _get_valid_setting_names

from concordance.settings import Settings

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "deployments"
POOLS = sorted((PLACE / "pools").glob("*.json"))
KUBERNETES = sorted((PLACE / "kubernetes").glob("*.yaml"))
TEXTS = [
    path
    for path in sorted(PLACE.rglob("*"))
    if path.is_file() and path.suffix in {".yaml", ".json", ".sh", ".example", ""}
]
OURS = {f"CONCORDANCE_{name.upper()}" for name in Settings.model_fields}
# Read by prefect.yaml, and by the program before there are settings.
PLACES = {"CONCORDANCE_ROOT", "CONCORDANCE_PROJECTS_FILE", "CONCORDANCE_PASSWORD"}
# Of a package that has its own settings, and one of compose.env alone.
OTHERS = {"PREFECT_INTEGRATIONS_KUBERNETES_OBSERVER_NAMESPACES", "PREFECT_PASSWORD"}
VARIABLE = re.compile(r"\b(?:CONCORDANCE|PREFECT)_[A-Z0-9_]+[A-Z0-9]\b")
# A name without a registry's host, and a tag that says which version.
PINNED = re.compile(r"[a-z0-9-]+(?:/[a-z0-9-]+)?:v?\d+\.\d+\.\d+(?:-[a-z0-9]+)*")
ADDRESS = re.compile(r"\b(?:https?|postgresql(?:\+asyncpg)?)://(?:[^/@\s]+@)?([a-z0-9.-]+):(\d+)")


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((PLACE / "compose.yaml").read_text("utf-8"))
    return found


def resources() -> Iterator[dict[str, Any]]:
    for path in KUBERNETES:
        yield from yaml.safe_load_all(path.read_text("utf-8"))


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [one for one in resources() if one["kind"] in kinds]


def pods() -> Iterator[dict[str, Any]]:
    """What every pod is made of: those of the manifests, and that of a run."""
    for one in of_kind("Deployment", "StatefulSet", "Job"):
        yield one["spec"]["template"]["spec"]
    yield template("kubernetes")["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]


def containers() -> Iterator[dict[str, Any]]:
    for pod in pods():
        yield from pod["containers"]


def template(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PLACE / "pools" / f"{name}.json").read_text("utf-8"))
    return found


def plain(text: str) -> str:
    """A text with what compose puts in shortened, so that a sign in it means nothing."""
    return re.sub(r"\$\{[^}]*\}", "${}", text)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in (*value.keys(), *value.values()):
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def test_there_is_something_to_look_at() -> None:
    assert [path.stem for path in POOLS] == ["docker", "kubernetes", "process"]
    assert len(list(resources())) > 10
    assert len(TEXTS) > 10


# --- names -----------------------------------------------------------------------------------


def test_every_variable_is_one_that_something_reads() -> None:
    prefect = set(_get_valid_setting_names(PrefectSettings))
    named = {
        (variable, path.name)
        for path in TEXTS
        for variable in VARIABLE.findall(path.read_text("utf-8"))
    }
    assert len(named) > 20
    known = OURS | PLACES | OTHERS | prefect
    assert {found for found in named if found[0] not in known} == set()


def test_images_are_pinned_and_name_no_registry() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    docker = (PLACE / "Dockerfile").read_text("utf-8")
    built = set(re.findall(r"^FROM (\S+) AS", docker, re.MULTILINE)) - {"program"}
    images = {service["image"] for service in compose()["services"].values()}
    images |= {c["image"] for c in containers() if not c["image"].startswith("{{")}
    images |= {
        template(n)["variables"]["properties"]["image"]["default"] for n in ("docker", "kubernetes")
    }
    assert {image for image in images | built if not PINNED.fullmatch(image)} == set()
    own = {image for image in images if image.startswith("concordance")}
    assert own == {f"concordance:{version}", f"concordance-worker:{version}"}


def test_what_pods_refer_to_is_there() -> None:
    made = {one["metadata"]["name"] for one in of_kind("ConfigMap")}
    accounts = {one["metadata"]["name"] for one in of_kind("ServiceAccount")}
    fields = template("kubernetes")["variables"]["properties"]
    assert fields["service_account_name"]["default"] in accounts
    for pod in pods():
        volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
        for container in pod["containers"]:
            for source in container.get("envFrom", ()):
                if "configMapRef" in source:
                    assert source["configMapRef"]["name"] in made
            mounted = {mount["name"] for mount in container.get("volumeMounts", ())}
            assert mounted - {"models"} <= volumes.keys()
        for volume in volumes.values():
            assert volume.get("configMap", {"name": "concordance"})["name"] in made
        account = pod.get("serviceAccountName")
        assert account is None or account.startswith("{{") or account in accounts


def test_secrets_that_are_made_by_hand_are_told_of() -> None:
    told = (ROOT / "docs" / "machines.md").read_text("utf-8")
    wanted = set()
    for value in (*pods(), *resources()):
        text = json.dumps(value)
        wanted |= set(
            re.findall(r'"secretKeyRef": \{"name": "([a-z-]+)", "key": "([a-z-]+)"', text)
        )
        wanted |= {(name, "") for name in re.findall(r'"secretRef": \{"name": "([a-z-]+)"', text)}
        wanted |= {(name, "") for name in re.findall(r'"secretName": "([a-z-]+)"', text)}
    assert ("concordance", "database-url") in wanted
    for name, key in wanted:
        assert f"secret generic {name} " in told
        assert key in told
    blocks = re.findall(
        r"prefect\.blocks\.secret\.([a-z-]+)", (PLACE / "pools/docker.json").read_text()
    )
    assert blocks == ["concordance-database-url"]
    assert blocks[0] in told


# --- secrets ---------------------------------------------------------------------------------


def test_no_password_stands_in_a_file() -> None:
    assert of_kind("Secret") == []
    for path in TEXTS:
        text = plain(path.read_text("utf-8"))
        for user, password in re.findall(r"://([^\s/:@]+):([^\s@]+)@", text):
            assert password.startswith("${"), f"{path.name}: a password of {user}"
        for name, value in re.findall(r"\b([A-Z_]*PASSWORD)[:=][ ]*(.*)", text):
            assert value.strip(' "') == "" or value.strip('" ').startswith("$"), (path.name, name)
        for name, value in re.findall(r"\b([A-Z_]*DATABASE_URL)\"?[:=] *\"?(.*)", text):
            assert value in ("", '"') or value.startswith(
                ("postgresql://", "{{ prefect.blocks.")
            ), name


def test_files_with_passwords_are_kept_out_of_git_and_of_the_image() -> None:
    ignored = ["deployments/compose.env", "deployments/http-keys.toml"]
    done = subprocess.run(
        ["git", "check-ignore", *ignored], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode == 128:
        pytest.skip("this is no git repository")
    assert done.stdout.split() == ignored
    kept_out = (PLACE / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert "**/*.env" in kept_out
    assert "**/http-keys.toml" in kept_out


def test_runs_have_no_rights_and_no_root() -> None:
    for pod in pods():
        if any(c["image"].startswith("ollama/") for c in pod["containers"]):
            continue
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
    docker = template("docker")["job_configuration"]
    assert docker["privileged"] is False
    assert docker["container_create_kwargs"]["user"] == "10001:10001"
    users = re.findall(r"^USER (\S+)$", (PLACE / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert users == ["10001:10001", "root", "10001:10001"]


def test_prefect_reports_to_nobody() -> None:
    off = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    assert "PREFECT_SERVER_ANALYTICS_ENABLED=false" in (PLACE / "Dockerfile").read_text("utf-8")
    for name, service in compose()["services"].items():
        if service["image"].startswith("concordance"):
            assert off.items() <= service["environment"].items(), name
    for name in ("process", "docker"):
        assert off.items() <= template(name)["job_configuration"]["env"].items()
    (settings,) = (c for c in of_kind("ConfigMap") if c["metadata"]["name"] == "concordance")
    assert off.items() <= settings["data"].items()
    for container in containers():
        if "concordance" in container["image"]:
            said = {one["name"]: one.get("value") for one in container.get("env", ())}
            given = [
                s["configMapRef"]["name"]
                for s in container.get("envFrom", ())
                if "configMapRef" in s
            ]
            assert off.items() <= said.items() or "concordance" in given, container["name"]


# --- places ----------------------------------------------------------------------------------


def test_addresses_in_compose_are_those_of_its_services() -> None:
    services = compose()["services"]
    asked = set()
    for name, service in services.items():
        for text in strings(service):
            asked |= {(host, port, name) for host, port in ADDRESS.findall(plain(text))}
    assert {host for host, _, _ in asked} >= {"postgres", "prefect", "ollama"}
    for host, port, by in asked:
        at = services[by] if host == "127.0.0.1" else services[host]
        listens = {*map(str, at.get("expose", ())), *at.get("command", ())}
        assert port in listens, f"{by} asks {host} at {port}"
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert published
    assert all(re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in published)


def test_addresses_in_the_cluster_are_those_of_its_services() -> None:
    services = {one["metadata"]["name"]: one["spec"] for one in of_kind("Service")}
    asked = {
        found for one in resources() for text in strings(one) for found in ADDRESS.findall(text)
    }
    assert {host for host, _ in asked} == {"prefect", "ollama"}
    for host, port in asked:
        assert int(port) in [p["port"] for p in services[host]["ports"]]
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in of_kind("Deployment", "StatefulSet")
    ]
    for name, spec in services.items():
        assert spec["selector"] in labels, name
    for pod in pods():
        for container in pod["containers"]:
            ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
            for probe in ("readinessProbe", "livenessProbe"):
                if probe in container:
                    assert container[probe]["httpGet"]["port"] in ports
            for port in ports.values():
                said = [*container.get("args", ()), *strings(container.get("env", []))]
                assert str(port) in said or container["image"].startswith("ollama/")


def test_what_the_image_is_made_of_is_there_and_reaches_the_builder() -> None:
    docker = (PLACE / "Dockerfile").read_text("utf-8")
    ignore = (PLACE / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    let_in = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert {name.split(".")[0] for name in packages["packages"]} | {"deployments"} <= let_in
    assert all((ROOT / name).exists() for name in let_in)
    for file in re.findall(r"requirements/[a-z]+\.txt", docker):
        assert (ROOT / file).is_file()
    installs = re.findall(r"pip install (.*)", docker)
    assert len(installs) == 3
    assert all("--require-hashes" in one or "--no-deps" in one for one in installs)


def test_the_script_of_the_database_is_a_script() -> None:
    script = PLACE / "postgres-init.sh"
    assert script.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(script)], check=True)


# --- work pools ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [path.stem for path in POOLS])
def test_prefect_takes_the_template(name: str) -> None:
    found = template(name)
    WorkPoolCreate(name="concordance", type=name, base_job_template=found)
    fields = found["variables"]["properties"]
    used = re.findall(r"\{\{ (\w+) \}\}", json.dumps(found["job_configuration"]))
    assert set(used) <= fields.keys()
    # The Kubernetes worker puts the variables of a run beside those of the manifest.
    assert set(fields) - set(used) <= ({"env"} if name != "kubernetes" else set())
    for deployment in yaml.safe_load((PLACE / "prefect.yaml").read_text("utf-8"))["deployments"]:
        assert deployment["work_pool"]["name"] == "concordance"
        assert deployment["work_pool"]["job_variables"].keys() <= fields.keys()


def test_pools_are_made_with_the_template_of_their_type() -> None:
    made = {
        (kind, file)
        for path in TEXTS
        for kind, file in re.findall(
            r"work-pool create concordance --type (\w+) --overwrite \\\s+"
            r"--base-job-template deployments/pools/(\w+)\.json",
            path.read_text("utf-8"),
        )
    }
    assert made == {("process", "process"), ("kubernetes", "kubernetes")}
