"""The files of the mirror service: parsed, and checked by systemd's own checker if it is installed."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from broker_core_postgres.commands import sync_command
from broker_core_postgres.settings import PostgresSettings
from tests.support.narrowed import present

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "postgres_sync"
SERVICE = EXAMPLE / "broker-core-postgres-sync.service"
TIMER = EXAMPLE / "broker-core-postgres-sync.timer"
ALERT = EXAMPLE / "broker-core-postgres-sync-alert@.service"


class _Unit(configparser.RawConfigParser):
    """A unit is an INI file whose keys are case-sensitive; a repeated key adds a line to its value."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def unit(path: Path) -> dict[str, dict[str, list[str]]]:
    sections: dict[str, dict[str, list[str]]] = {}
    _Unit(strict=False).read(path)  # raises for what is no INI file
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            sections.setdefault(section, {}).setdefault(key, []).append(value)
    return sections


def options_of(command: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in command if word.startswith("--")}


def known_options() -> set[str]:
    import typer

    from broker_core.cli.common_options import command

    app = typer.Typer()
    app.command()(command(sync_command.run))
    return {name for parameter in typer.main.get_command(app).params for name in parameter.opts}


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    checker = shutil.which("systemd-analyze")
    if checker is None:
        pytest.skip("there is no systemd-analyze here; the units are parsed by the other tests")
    units = (SERVICE, TIMER, ALERT)
    for path in units:
        shutil.copy(path, tmp_path)
    done = subprocess.run(
        [checker, "verify", "--recursive-errors=no", *(tmp_path / path.name for path in units)],
        capture_output=True,
        text=True,
        check=False,
    )
    # What it says about units of the machine itself is not ours.
    ours = [line for line in done.stderr.splitlines() if "broker-core-postgres-sync" in line]
    assert not ours, done.stderr


def test_the_service_runs_one_sync_without_secrets_in_its_words() -> None:
    service = unit(SERVICE)["Service"]
    assert service["Type"] == ["oneshot"]
    (start,) = service["ExecStart"]
    words = shlex.split(start)
    assert words[:4] == ["/usr/bin/env", "broker-core", "postgres", "sync"]
    assert options_of(words) <= known_options()
    credentials = {line.partition(":")[0] for line in service["LoadCredential"]}
    assert credentials == {"pgpass"}, "what is loaded must be there: a cluster may want no token"
    assert set(re.findall(r"%d/([\w-]+)", SERVICE.read_text())) == credentials
    given = {line.partition("=")[0] for line in service["Environment"]}
    assert set(re.findall(r"\$\{?(\w+)\}?", start)) <= given
    for key in ("DynamicUser", "NoNewPrivileges", "PrivateTmp", "ProtectHome"):
        assert service[key] == ["yes"]
    assert service["ProtectSystem"] == ["strict"]


def test_a_token_is_a_drop_in() -> None:
    service = unit(EXAMPLE / "token.conf")["Service"]
    (credential,), (variable,) = service["LoadCredential"], service["Environment"]
    assert credential.startswith("pulsar-token:/etc/broker-core/")
    name, _, option = variable.partition("=")
    assert f"${name}" in unit(SERVICE)["Service"]["ExecStart"][0].split()
    assert option == "--token-file=%d/pulsar-token"
    assert options_of([option]) <= known_options()


def test_the_addresses_are_those_of_the_roles() -> None:
    given = dict(line.split("=", 1) for line in unit(SERVICE)["Service"]["Environment"])
    lines = (EXAMPLE / "postgres-sync.env").read_text().splitlines()
    settings = dict(line.removeprefix("#").split("=", 1) for line in lines if re.match(r"#?[A-Z_]+=", line))
    assert settings.keys() <= given.keys()
    assert options_of(shlex.split(settings["OPTIONS"])) <= known_options()
    user = given["DSN"].partition("://")[2].partition("@")[0]
    roles = (ROOT / "docs" / "how-to" / "postgres-operate.md").read_text()
    assert f"CREATE ROLE {user} LOGIN" in roles
    assert f"createdb {given['DSN'].rpartition('/')[2]}\n" in roles
    assert settings["DSN"] == given["DSN"]


def test_whatever_is_not_0_alerts() -> None:
    """3 too: something may be wrong in the database for as long as that is so."""
    service = unit(SERVICE)
    assert not {"SuccessExitStatus", "RestartPreventExitStatus"} & service["Service"].keys()
    assert "-" not in service["Service"]["ExecStart"][0][0], "its exit code is not ignored"
    (handler,) = service["Unit"]["OnFailure"]
    assert handler == f"{ALERT.name.removesuffix('.service')}%n.service"
    assert "%i" in unit(ALERT)["Service"]["ExecStart"][0]
    for page in (EXAMPLE / "README.md", ROOT / "docs" / "how-to" / "postgres-fill.md"):
        assert ALERT.name in page.read_text()
    job = documents()["CronJob"]["spec"]["jobTemplate"]["spec"]
    assert job["backoffLimit"] == 0
    assert "podFailurePolicy" not in job


def test_the_rules_name_metrics_that_there_are() -> None:
    rules = yaml.safe_load((EXAMPLE / "alerts.yaml").read_text())["groups"][0]["rules"]
    named = {name for rule in rules for name in re.findall(r"broker_core_\w+", rule["expr"])}
    assert named == {"broker_core_postgres_mirror_last_success_timestamp_seconds"}
    metrics = (ROOT / "docs" / "reference" / "postgres.md").read_text()
    assert all(f"| `{name}` |" in metrics for name in named)


def test_the_timer_starts_the_service_after_its_last_run() -> None:
    timer = unit(TIMER)
    assert TIMER.stem == SERVICE.stem
    assert timer["Install"]["WantedBy"] == ["timers.target"]
    assert "OnUnitInactiveSec" in timer["Timer"]


def documents() -> dict[str, Any]:
    with (EXAMPLE / "cronjob.yaml").open() as stream:
        return {document["kind"]: document for document in yaml.safe_load_all(stream)}


def test_the_cron_job_runs_one_sync_at_a_time_without_rights() -> None:
    job = documents()["CronJob"]
    assert job["apiVersion"] == "batch/v1"
    spec = job["spec"]
    assert re.fullmatch(r"(\S+ ){4}\S+", spec["schedule"])
    assert spec["concurrencyPolicy"] == "Forbid"
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    (container,) = pod["containers"]
    assert container["command"] == ["broker-core", "postgres", "sync"]
    assert options_of(container["args"]) <= known_options()
    rights = container["securityContext"]
    assert rights["allowPrivilegeEscalation"] is False
    assert rights["readOnlyRootFilesystem"] is True
    assert rights["capabilities"] == {"drop": ["ALL"]}


def test_what_the_cron_job_mounts_is_what_it_reads() -> None:
    import tomllib

    both = documents()
    pod = both["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    places = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    settings = places["/etc/broker-core"]["configMap"]["name"]
    assert settings == both["ConfigMap"]["metadata"]["name"]
    read = dict(argument.lstrip("-").split("=", 1) for argument in container["args"])
    folder, _, name = read["config"].rpartition("/")
    assert folder in places
    table = tomllib.loads(both["ConfigMap"]["data"][name])["plugins"]["postgres"]
    plugin = PostgresSettings.model_validate(table)
    secrets = [str(present(plugin.password_file)), read["token-file"]]
    assert {secret.rpartition("/")[0] for secret in secrets} == {"/var/run/secrets/broker-core"}
    assert "secret" in places["/var/run/secrets/broker-core"]
    made = present(re.search(r"create secret generic (\S+) (.*)", (EXAMPLE / "cronjob.yaml").read_text()))
    assert made[1] == places["/var/run/secrets/broker-core"]["secret"]["secretName"]
    assert {Path(secret).name for secret in secrets} == set(re.findall(r"--from-file=(\S+)", made[2]))
