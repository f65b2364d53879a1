"""The manifests of Kubernetes: compared with the image, the settings and the server, and checked for unknown fields."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml  # type: ignore[import-untyped]

from broker_core.cli.command_tree import app
from broker_core.quantities import parse_duration, parse_size
from broker_core.settings import load_settings
from broker_core_postgres.settings import PostgresSettings
from tests.support.distributions import CORE, ROOT
from tests.support.narrowed import of_type, present

EXAMPLE = ROOT / "examples" / "kubernetes"
README = EXAMPLE / "README.md"
FILES = {"standalone.yaml": "StatefulSet", "gateway.yaml": "Deployment"}
VERSIONS = {
    "ConfigMap": "v1",
    "Service": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
}
#: The fields that are used here: an unknown one would be dropped, and the manifest say less than it seems to.
POD_FIELDS = {
    "automountServiceAccountToken",
    "containers",
    "enableServiceLinks",
    "securityContext",
    "terminationGracePeriodSeconds",
    "topologySpreadConstraints",
    "volumes",
}
CONTAINER_FIELDS = {
    "args",
    "image",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "startupProbe",
    "volumeMounts",
}
PROBE_FIELDS = {"httpGet", "periodSeconds", "timeoutSeconds", "failureThreshold"}
#: Python and its libraries, and what reading a namespace takes, above what `[limits]` counts.
BESIDE_LIMITS = 512 << 20

each_file = pytest.mark.parametrize("file", FILES)


def documents(file: str) -> dict[str, Any]:
    with (EXAMPLE / file).open() as stream:
        every = list(yaml.safe_load_all(stream))
    found = {document["kind"]: document for document in every}
    assert len(found) == len(every)
    return found


def pod(file: str) -> dict[str, Any]:
    spec: dict[str, Any] = documents(file)[FILES[file]]["spec"]["template"]["spec"]
    return spec


def container(file: str) -> dict[str, Any]:
    (only,) = pod(file)["containers"]
    return of_type(only, dict)


def of_image(name: str) -> str:
    """What an instruction of the Containerfile's last stage says."""
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    *_, last = re.findall(rf"^{name} (.*)$", text, re.MULTILINE)
    return str(last)


def settings_of(file: str, tmp_path: Path) -> Any:
    """The settings in force in the pod: the file of the ConfigMap, and the image's variables."""
    (name, text), *more = documents(file)["ConfigMap"]["data"].items()
    assert not more
    (tmp_path / name).write_text(text)
    variables = dict(pair.split("=", 1) for pair in of_image("ENV").split())
    return load_settings(tmp_path / name, environment=variables).settings


def ports_of(file: str) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container(file)["ports"]}


@each_file
def test_each_object_is_of_the_one_application(file: str) -> None:
    every = documents(file)
    assert {kind: document["apiVersion"] for kind, document in every.items()} == {
        kind: VERSIONS[kind] for kind in every
    }
    (name,) = {document["metadata"]["name"] for document in every.values()}
    labels = {"app.kubernetes.io/name": name}
    assert all(document["metadata"]["labels"] == labels for document in every.values())
    workload = every[FILES[file]]["spec"]
    assert workload["template"]["metadata"]["labels"] == labels
    assert workload["selector"] == {"matchLabels": labels}
    assert every["Service"]["spec"]["selector"] == labels
    assert every["NetworkPolicy"]["spec"]["podSelector"] == {"matchLabels": labels}
    if FILES[file] == "StatefulSet":
        assert (workload["serviceName"], workload["replicas"]) == (name, 1)
    else:
        budget = every["PodDisruptionBudget"]["spec"]
        assert budget["selector"] == {"matchLabels": labels}
        assert budget["minAvailable"] < workload["replicas"]


@each_file
def test_no_field_is_misspelt(file: str) -> None:
    assert pod(file).keys() <= POD_FIELDS
    assert container(file).keys() == CONTAINER_FIELDS
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container(file)[probe].keys() <= PROBE_FIELDS


@each_file
def test_it_runs_the_image_of_the_containerfile(file: str) -> None:
    assert container(file)["image"] == f"broker-core:{CORE.project['version']}"
    assert f"-t {container(file)['image']} ." in README.read_text()
    rights, own = pod(file)["securityContext"], container(file)["securityContext"]
    assert f"{rights['runAsUser']}:{rights['runAsGroup']}" == of_image("USER")
    assert rights["fsGroup"] == rights["runAsGroup"]
    assert rights["runAsNonRoot"] is own["readOnlyRootFilesystem"] is True
    assert own["allowPrivilegeEscalation"] is pod(file)["automountServiceAccountToken"] is False
    assert own["capabilities"] == {"drop": ["ALL"]}


@each_file
def test_its_command_is_known_and_its_files_are_mounted(file: str) -> None:
    command, *options = container(file)["args"]
    commands: Any = typer.main.get_command(app)
    known = {name for parameter in commands.commands[command].params for name in parameter.opts}
    given = dict(option.split("=", 1) for option in options)
    assert given.keys() <= known
    volumes = {volume["name"]: volume for volume in pod(file)["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container(file)["volumeMounts"]}
    folder, _, name = given["--config"].rpartition("/")
    assert (
        volumes[mounts[folder]["name"]]["configMap"]["name"]
        == documents(file)["ConfigMap"]["metadata"]["name"]
    )
    assert name in documents(file)["ConfigMap"]["data"]
    assert mounts[folder]["readOnly"] is True
    claims = documents(file)[FILES[file]]["spec"].get("volumeClaimTemplates", [])
    kept = {claim["metadata"]["name"] for claim in claims}
    assert {mount["name"] for mount in mounts.values()} == volumes.keys() | kept
    # What the image keeps is on the volume that lasts.
    assert [mounts[of_image("VOLUME")]["name"]] == sorted(kept) if kept else of_image("VOLUME") not in mounts


@each_file
def test_the_ports_are_those_that_the_server_listens_on(file: str, tmp_path: Path) -> None:
    settings = settings_of(file, tmp_path)
    ports = ports_of(file)
    assert ports == {"pulsar": settings.pulsar.listen.port, "http": settings.http.listen.port}
    assert {settings.pulsar.listen.host, settings.http.listen.host} == {"0.0.0.0"}
    every = documents(file)
    assert {
        (port["name"], port["port"], port["targetPort"]) for port in every["Service"]["spec"]["ports"]
    } == {(name, port, name) for name, port in ports.items()}
    allowed = [port["port"] for rule in every["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]
    assert allowed == [ports["pulsar"], ports["http"]]
    noted = every[FILES[file]]["spec"]["template"]["metadata"]["annotations"]
    assert noted["prometheus.io/port"] == str(ports["http"])


@each_file
def test_the_probes_ask_what_the_server_answers(file: str) -> None:
    served = (ROOT / "docs" / "reference" / "protocol.md").read_text()
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container(file)[name]["httpGet"]
        assert asked["port"] == "http"
        assert f"| `GET {asked['path']}` |" in served
    assert container(file)["livenessProbe"]["httpGet"]["path"] == "/-/live"
    assert container(file)["readinessProbe"]["httpGet"]["path"] == "/-/ready"


@each_file
def test_a_server_that_stops_has_time_for_it(file: str, tmp_path: Path) -> None:
    pulsar, probe = settings_of(file, tmp_path).pulsar, container(file)["readinessProbe"]
    assert pulsar.drain_delay > probe["periodSeconds"] * probe["failureThreshold"]
    assert pod(file)["terminationGracePeriodSeconds"] > 2 * (pulsar.drain_delay + pulsar.drain_timeout)


@each_file
def test_the_memory_has_room_for_the_limits(file: str, tmp_path: Path) -> None:
    limits = settings_of(file, tmp_path).limits
    # A quarter of the snapshots besides is for those that readers hold.
    counted = limits.heap_permits + limits.direct_permits + limits.snapshots * 5 // 4
    memory = parse_size(container(file)["resources"]["limits"]["memory"].replace("i", "iB"))
    assert memory >= counted + BESIDE_LIMITS
    unit = (ROOT / "examples" / "serve_systemd" / "broker-core.service").read_text()
    assert memory == parse_size(re.findall(r"^MemoryMax=(.*)$", unit, re.MULTILINE)[0])


def test_the_gateway_reads_its_password_from_the_secret(tmp_path: Path) -> None:
    settings = settings_of("gateway.yaml", tmp_path)
    assert settings.upstream is not None
    assert settings.plugins.enabled == ("postgres",)
    of_plugin = settings.plugins.table("postgres")
    roles = (ROOT / "docs" / "how-to" / "postgres-operate.md").read_text()
    user = of_plugin["dsn"].partition("://")[2].partition("@")[0]
    assert f"CREATE ROLE {user} LOGIN;" in roles
    own = {name: value for name, value in of_plugin.items() if name in PostgresSettings.model_fields}
    plugin = PostgresSettings.model_validate(own)
    assert plugin.password_file is not None
    volumes = {volume["name"]: volume for volume in pod("gateway.yaml")["volumes"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in container("gateway.yaml")["volumeMounts"]}
    secret = volumes[mounts[str(plugin.password_file.parent)]]["secret"]["secretName"]
    for page in (README, EXAMPLE / "gateway.yaml"):
        made = present(re.search(r"create secret generic (\S+) --from-file=(\S+)", page.read_text()))
        assert made.groups() == (secret, plugin.password_file.name)


def test_a_gateway_before_a_secured_cluster_has_its_files_in_the_secret(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "secured.toml").write_text(text)
    settings = load_settings(tmp_path / "secured.toml", environment={}).settings
    assert settings.pulsar.tls is not None
    assert present(settings.upstream).has_own_credentials
    mounted = {mount["mountPath"] for mount in container("gateway.yaml")["volumeMounts"]}
    files = {Path(file) for file in re.findall(r'"(?:file:)?(/\S+)"', text)}
    assert {str(file.parent) for file in files} <= mounted
    assert all(f"`{file.name}`" in README.read_text() for file in files)


@each_file
def test_the_labels_of_clients_are_those_of_the_readme(file: str) -> None:
    rule, *_ = documents(file)["NetworkPolicy"]["spec"]["ingress"]
    (label,) = rule["from"][0]["podSelector"]["matchLabels"].items()
    assert f'`{label[0]}: "{label[1]}"`' in README.read_text()


def test_the_commands_of_the_readme_are_those_of_a_shell() -> None:
    for block in re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL):
        subprocess.run(["sh", "-n", "-c", block], check=True)
        for line in block.splitlines():
            words = shlex.split(line)
            for file in (word for word in words if word.endswith(".yaml")):
                assert file in FILES
            if "rollout" in words:
                kind, name = words[-1].split("/")
                assert any(
                    FILES[each].lower() == kind and documents(each)["Service"]["metadata"]["name"] == name
                    for each in FILES
                )


def test_durations_of_the_probes_are_those_of_the_page() -> None:
    """A pod has five minutes for its first start, as the comment says."""
    probe = container("standalone.yaml")["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == parse_duration("5m")


def test_every_page_names_the_image_of_this_release() -> None:
    pages = [ROOT / "docs" / "how-to" / "install.md", *(ROOT / "examples").rglob("*.yaml"), README]
    named = {
        found for page in pages for found in re.findall(r"(?<!/)\bbroker-core:(\d[\w.]*\w)", page.read_text())
    }
    assert named == {CORE.project["version"]}
