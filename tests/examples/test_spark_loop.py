"""The loop of `examples/spark_loop`, as its README runs it: coverage rises from 0 to over 95 %.

The files that schedule it are read by what reads them: a shell, the parsers of cron's lines, of YAML and of Python.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from broker_core.cli.plugin_commands import commands_of
from broker_core.cli.running_broker import get
from broker_core_spark.commands.status_command import read_metrics
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.settings import SparkSettings
from tests.support.eventually import eventually_sync
from tests.support.files import file_with
from tests.support.forked_programs import forked_program
from tests.support.narrowed import present
from tests.support.ports import free_ports
from tests.support.served import Served

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "spark_loop"
README = EXAMPLE / "README.md"
ALWAYS = (EXAMPLE / "always.jsonl").read_text().splitlines()


class Folder:
    """A copy of the example, with a broker on free ports and its commands on the path."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "spark_loop"
        shutil.copytree(EXAMPLE, self.path, ignore=shutil.ignore_patterns("__pycache__"))
        tables = tomllib.loads((EXAMPLE / "broker-core.toml").read_text())
        tables["pulsar"]["listen"] = tables["http"]["listen"] = "127.0.0.1:0"
        tables["catalog"]["path"] = str(self.path / "broker-core.sqlite")
        tables["plugins"]["spark"]["store"] = str(self.path / "generations")
        self.served = Served(self.path, tables)
        binaries = str(Path(forked_program("broker-core")).parent)
        self.environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}

    def run(self, *command: str, given: str = "") -> str:
        """What a command of the README prints; it must not fail."""
        done = self.attempt(*command, given=given)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    def attempt(self, *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """A command of the README, whatever comes of it."""
        return subprocess.run(
            command,
            cwd=self.path,
            input=given,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    @property
    def url(self) -> str:
        return self.served.service_url

    def by_cron(self) -> subprocess.CompletedProcess[str]:
        """One turn of the loop as cron runs it, in this folder."""
        self.write_script()
        command = cron_command().replace("/var/lib/broker-core", shlex.quote(str(self.path)))
        return self.attempt(
            "sh", "-c", command.replace("broker-core.toml", shlex.quote(str(self.served.config)))
        )

    def refresh(self) -> subprocess.CompletedProcess[str]:
        """One turn of the loop by the script of the example."""
        self.write_script()
        catalogue, store = str(self.path / "broker-core.sqlite"), str(self.path / "generations")
        return self.attempt("./refresh.sh", str(self.served.config), catalogue, store, "--master", "local[2]")

    def write_script(self) -> None:
        """The script of the example with the address of this test's own broker."""
        script = (EXAMPLE / "refresh.sh").read_text()
        export = 'patterns export --config "$config"'
        assert export in script
        address = f"http://{self.served.ready['http']}"
        (self.path / "refresh.sh").write_text(script.replace(export, f"{export} --broker {address}"))

    def import_topics(self) -> None:
        topics = self.run(forked_program("python"), "make_topics.py", "3000")
        config = str(self.served.config)
        self.run("broker-core", "topics", "import", "public/default", "-", "--config", config, given=topics)

    def traffic(self, questions: int, seed: int) -> str:
        program = ["traffic.py", self.url, "--questions", str(questions), "--seed", str(seed)]
        return self.run(forked_program("python"), *program)

    def status(self) -> dict[str, Any]:
        broker = f"http://{self.served.ready['http']}"
        config = str(self.served.config)
        said = self.run("broker-core", "spark", "status", "--config", config, "--broker", broker, "--json")
        report: dict[str, Any] = json.loads(said)
        return report

    def of_broker(self) -> dict[str, Any]:
        """What ``status`` has under ``served``, without a process for each look."""
        return read_metrics(get(f"http://{self.served.ready['http']}", "/metrics"))


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What the build says in a turn of the loop, which must not fail."""
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("{")]
    result: dict[str, Any] = json.loads(line)
    return result


def answered(served: dict[str, Any]) -> tuple[float, int]:
    """How many questions were answered by the plugin, and how many there were."""
    return served["last_hour_questions"] * (served["last_hour_coverage"] or 0), served["last_hour_questions"]


def test_the_coverage_rises_from_nothing_to_nearly_all(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.import_topics()
    with folder.served as served:
        folder.traffic(1000, seed=1)
        before = folder.status()
        assert before["published"]["generation"] is None
        assert (before["served"]["last_hour_questions"], before["served"]["last_hour_coverage"]) == (
            1000,
            0.0,
        )
        assert before["served"]["refused"] is False

        # One turn of the loop, as cron makes it: where all is well it has nothing to mail.
        turn = folder.by_cron()
        assert (turn.returncode, turn.stdout, turn.stderr) == (0, "", "")
        assert '"generation":' in (folder.path / "refresh.log").read_text()
        published = folder.status()["published"]
        assert published["questions"] > 40

        def is_served() -> bool:
            return bool(folder.of_broker()["generation"] == published["generation"])

        eventually_sync(is_served, timeout=120)
        answers_before, count_before = answered(folder.of_broker())
        folder.traffic(1000, seed=2)
        after = folder.of_broker()
        answers_after, count_after = answered(after)
        assert count_after - count_before == 1000
        assert answers_after - answers_before > 950
        assert after["refused"] is False
        assert after["mapped_bytes"] > 0

        # And it is followed: a topic that comes is in the next answer, which is still the plugin's.
        pattern = "persistent://public/default/orders-eu-.*"
        url = served.service_url
        ask = ("broker-core", "list", "public/default", "--pattern", pattern, "--url", url)
        there = set(folder.run(*ask).splitlines())
        new = "persistent://public/default/orders-eu-new"
        folder.run("broker-core", "topics", "create", new, "--config", str(served.config))
        assert set(folder.run(*ask).splitlines()) == there | {new}
        end = folder.of_broker()
        assert end["overlay_names"] == 1
        assert end["passed"] == after["passed"]


@pytest.mark.long
def test_after_a_restart_nothing_that_was_learned_is_lost(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.import_topics()
    with folder.served:
        folder.traffic(1000, seed=1)
        first = result_of(folder.refresh())
        assert first["questions"] > 40
    with folder.served:  # which knows one question
        for _ in range(2):
            folder.run("broker-core", "list", "public/default", "--pattern", ".*-new", "--url", folder.url)
        again = result_of(folder.refresh())
        (learned,) = (folder.path / "patterns.jsonl").read_text().splitlines()
        assert json.loads(learned)["pattern"] == ".*-new"
        assert again["questions"] == first["questions"] + 1
        assert again["kept_questions"] == first["questions"] - len(ALWAYS)


def test_the_exit_code_of_a_build_is_that_of_the_script(tmp_path: Path) -> None:
    stub = file_with(
        tmp_path / "broker-core", f'#!/bin/sh\necho "$2" >> {tmp_path}/called\n[ "$2" != build ] || exit 3\n'
    )
    stub.chmod(0o755)
    command = ["sh", str(EXAMPLE / "refresh.sh"), "broker-core.toml", "broker-core.sqlite", "generations"]
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, timeout=60, check=False)
    assert done.returncode == 3
    assert (tmp_path / "called").read_text().split() == ["patterns", "build"]


# -- the files that schedule it


def options_of(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def spark_command(*names: str) -> Any:
    """A command of the plugin's group, as `broker-core` has it."""
    command = commands_of("spark", SparkPlugin())
    for name in names:
        command = command.commands[name]
    return command


def assert_is_known(words: list[str]) -> None:
    """`broker-core spark ...` with options that the command has."""
    assert words[:2] == ["broker-core", "spark"]
    names = words[2:4] if words[2] == "patterns" else words[2:3]
    common = {"--config"}  # every command has it
    known = {name for parameter in spark_command(*names).params for name in parameter.opts} | common
    assert options_of(words[2 + len(names) :]) <= known


def test_each_command_of_the_script_has_the_settings() -> None:
    assert [words[words.index("--config") + 1] for words in script_commands()] == ["$config"] * 3


def script_commands() -> list[list[str]]:
    text = (EXAMPLE / "refresh.sh").read_text().replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines() if line.startswith("broker-core ")]


def test_traffic_to_nobody_is_one_line() -> None:
    (port,) = free_ports(1)
    program = [forked_program("python"), str(EXAMPLE / "traffic.py"), f"pulsar://127.0.0.1:{port}"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"traffic.py: pulsar://127.0.0.1:{port}: cannot connect")
    assert done.stderr.count("\n") == 1


def test_the_script_is_one_of_a_shell_and_its_commands_are_known() -> None:
    assert os.access(EXAMPLE / "refresh.sh", os.X_OK)
    subprocess.run(["sh", "-n", str(EXAMPLE / "refresh.sh")], check=True)
    commands = script_commands()
    assert [words[2] for words in commands] == ["patterns", "build", "gc"]
    for words in commands:
        assert_is_known(words)


_FIELDS = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 7)}


def assert_is_schedule(text: str) -> None:
    """Five fields of crontab(5): ``*``, a number, a range, a step, or several of them."""
    fields = text.split()
    assert len(fields) == len(_FIELDS)
    for field, (low, high) in zip(fields, _FIELDS.values(), strict=True):
        for part in field.split(","):
            matched = re.fullmatch(r"(?:\*|(\d+)(?:-(\d+))?)(?:/(\d+))?", part)
            assert matched, part
            assert all(low <= int(number) <= high for number in matched.groups()[:2] if number is not None)
            assert matched[3] is None or int(matched[3]) > 0


def cron_command() -> str:
    """The command of the only job of the file."""
    lines = (EXAMPLE / "broker-core-spark.cron").read_text()
    assert lines.endswith("\n")  # cron leaves a last line without an end out
    jobs = [line for line in lines.splitlines() if line and line[0] != "#" and not re.match(r"[A-Z]+=", line)]
    (job,) = jobs
    parts = job.split(None, 6)
    assert_is_schedule(" ".join(parts[:5]))
    assert re.fullmatch(r"[a-z][a-z0-9-]*", parts[5])  # the user of /etc/cron.d
    return parts[6]


def test_the_lines_of_cron() -> None:
    command = cron_command()
    assert "%" not in command  # which would end the command
    subprocess.run(["sh", "-n", "-c", command], check=True)
    assert "./refresh.sh broker-core.toml broker-core.sqlite generations" in command


def test_the_cron_job_of_kubernetes() -> None:
    text = (EXAMPLE / "cronjob.yaml").read_text()
    job = yaml.safe_load(text)
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    spec = job["spec"]
    assert_is_schedule(spec["schedule"])
    assert spec["concurrencyPolicy"] == "Forbid"
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"]["runAsNonRoot"] is True
    (learn,), (build,) = pod["initContainers"], pod["containers"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in (learn, build):
        assert_is_known([*container["command"], *container["args"]])
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    given = dict(argument.lstrip("-").partition("=")[::2] for argument in learn["args"] + build["args"])
    assert given["output"] == given["patterns"]
    places = [mount["mountPath"] for mount in build["volumeMounts"] if not mount.get("readOnly")]
    assert Path(given["patterns"]).parent == Path(places[0])
    made = present(re.search(r"create secret generic (\S+)", text))
    keys = set(re.findall(r"--from-(?:file|literal)=(\w+)", text[made.end() :].partition("\n")[0]))
    secrets = [variable["valueFrom"]["secretKeyRef"] for variable in build["env"] if "valueFrom" in variable]
    assert {(secret["name"], secret["key"]) for secret in secrets} == {(made[1], key) for key in keys}


def test_the_settings_are_the_plugins(tmp_path: Path) -> None:
    tables = tomllib.loads((EXAMPLE / "broker-core.toml").read_text())
    assert SparkSettings.model_validate(tables["plugins"]["spark"]).store == "generations"
    for name in re.findall(r"\b[\w-]+\.(?:sh|py|toml|cron|yaml)\b", README.read_text()):
        assert (EXAMPLE / name).is_file(), name


@pytest.mark.parametrize("count", [0, 7])
def test_the_topics_are_lines_of_an_import(count: int) -> None:
    program = [forked_program("python"), str(EXAMPLE / "make_topics.py"), str(count)]
    said = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert len({json.loads(line)["name"] for line in said.splitlines()}) == count
