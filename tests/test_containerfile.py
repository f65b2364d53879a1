"""The Containerfile: its commands run in folders of the test, its server serves, its health check tells the truth."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker_core.settings import Settings, load_settings
from tests.support.distributions import DISTRIBUTIONS, ROOT
from tests.support.fresh_environment import offline_pythons, run_program
from tests.support.ports import free_ports
from tests.support.program_lines import ProgramLines

FILE = ROOT / "Containerfile"
#: What an instruction of a Dockerfile may be.
KNOWN = {
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "RUN",
    "STOPSIGNAL",
} | {
    "USER",
    "VOLUME",
    "WORKDIR",
}


@dataclass(frozen=True, slots=True)
class Instruction:
    name: str
    rest: str


def instructions() -> list[Instruction]:
    text = "\n".join(line for line in FILE.read_text().splitlines() if not line.lstrip().startswith("#"))
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    found = [Instruction(*line.split(None, 1)) for line in lines if line]
    assert {each.name for each in found} <= KNOWN
    return found


def stages() -> list[list[Instruction]]:
    """The instructions before the first FROM, then the ones of each stage."""
    found: list[list[Instruction]] = [[]]
    for each in instructions():
        if each.name == "FROM":
            found.append([])
        found[-1].append(each)
    return found


def all_of(stage: list[Instruction], name: str) -> list[str]:
    return [each.rest for each in stage if each.name == name]


def one_of(stage: list[Instruction], name: str) -> str:
    (rest,) = all_of(stage, name)
    return rest


_BEFORE, BUILD, SERVER = stages()


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in one_of(SERVER, "ENV").split())


def test_both_stages_have_one_slim_base() -> None:
    bases = [one_of(stage, "FROM").split()[0] for stage in (BUILD, SERVER)]
    assert bases[0] == bases[1] == "docker.io/library/python:${PYTHON}-slim"
    assert re.fullmatch(r"PYTHON=3\.\d+", one_of(_BEFORE, "ARG"))
    assert one_of(BUILD, "FROM").endswith(" AS build")


def test_what_is_copied_is_there_and_is_sent_to_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    sent = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = [name for rest in all_of(BUILD, "COPY") for name in rest.split()[:-1]]
    assert set(copied) == sent
    assert all((ROOT / name).exists() for name in copied)


def test_the_server_is_nobody_special() -> None:
    user = one_of(SERVER, "USER")
    uid, _, gid = user.partition(":")
    assert int(uid) > 0
    made = all_of(SERVER, "RUN")[0]
    assert f"--uid {uid} --gid {gid} " in made
    assert f"install -d -o {uid} -g {gid} -m 0700 {one_of(SERVER, 'VOLUME')}" in made


def test_its_environment_are_settings_that_others_can_reach() -> None:
    variables = {name: value for name, value in environment().items() if name != "PATH"}
    settings = load_settings(environment=variables).settings
    volume, ports = one_of(SERVER, "VOLUME"), one_of(SERVER, "EXPOSE").split()
    assert settings.catalog.path.parent == Path(volume) == Path(one_of(SERVER, "WORKDIR"))
    assert settings.http is not None
    assert str(settings.pulsar.listen) == f"0.0.0.0:{ports[0]}"
    assert str(settings.http.listen) == f"0.0.0.0:{ports[1]}"
    assert str(Settings().pulsar.listen).endswith(f":{ports[0]}")


def test_every_plugin_is_in_by_default() -> None:
    name, _, value = one_of(BUILD, "ARG").partition("=")
    assert name == "PLUGINS"
    assert {f"plugins/{word}" for word in value.strip('"').split()} == {
        str(each.folder.relative_to(ROOT)) for each in DISTRIBUTIONS[1:]
    }


# -- what it runs


@dataclass(frozen=True, slots=True)
class Image:
    """The folders that the image would have, under one of the test."""

    root: Path
    path: str

    def run(self, command: str, **variables: str) -> None:
        """A command of RUN, in the working folder of the build."""
        text = re.sub(r"(?<![\w./-])/(?=(?:opt|src|var)/)", f"{self.root}/", command)
        done = subprocess.run(
            ["sh", "-c", text],
            cwd=self.root / "src",
            env={**os.environ, "PATH": self.path, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}: {done.stdout[-3000:]}{done.stderr[-3000:]}"

    @property
    def programs(self) -> Path:
        return self.root / "opt" / "broker-core" / "bin"


#: The plugins of the image of these tests.
PLUGINS = "postgres"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The first stage, done; but pip fetches nothing, since what is locked is there."""
    root = tmp_path_factory.mktemp("image")
    for name in ("src", "opt", "programs"):
        (root / name).mkdir()
    offline_pythons(root / "programs")
    made = Image(root, f"{root / 'programs'}{os.pathsep}{os.environ['PATH']}")
    for each in BUILD:
        match each.name:
            case "COPY":
                *sources, into = each.rest.split()
                for source in sources:
                    target = (
                        root / "src" / into / Path(source).name if into.endswith("/") else root / "src" / into
                    )
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if (ROOT / source).is_dir():
                        shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
                    else:
                        shutil.copy(ROOT / source, target)
            case "RUN":
                made.run(each.rest, PLUGINS=PLUGINS)
    return made


def test_the_image_has_the_plugins_that_were_asked_for(image: Image) -> None:
    said = run_program([image.programs / "broker-core", "plugins"], cwd=image.root)
    assert [name for name in ("postgres", "spark") if name in said] == [PLUGINS]
    where = [image.programs / "python", "-c", "import broker_core; print(broker_core.__file__)"]
    assert Path(run_program(where, cwd=image.root).strip()).is_relative_to(image.root / "opt")


def test_it_serves_and_its_health_check_tells_the_truth(image: Image, tmp_path: Path) -> None:
    pulsar, http = free_ports(2)
    variables = environment() | {
        "BROKER_CORE_PULSAR__LISTEN": f"127.0.0.1:{pulsar}",
        "BROKER_CORE_HTTP__LISTEN": f"127.0.0.1:{http}",
        "BROKER_CORE_CATALOG__PATH": str(tmp_path / "topics.sqlite"),
        "PATH": f"{image.programs}{os.pathsep}{os.environ['PATH']}",
    }
    options, _, command = one_of(SERVER, "HEALTHCHECK").partition("CMD ")
    assert all(re.fullmatch(r"--[a-z-]+=\d+s?", option) for option in options.split())

    def healthy() -> bool:
        checked = subprocess.run(json.loads(command), env=variables, capture_output=True, check=False)
        return checked.returncode == 0

    assert not healthy()
    start = [*json.loads(one_of(SERVER, "ENTRYPOINT")), *json.loads(one_of(SERVER, "CMD"))]
    server = subprocess.Popen(
        [image.programs / start[0], *start[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=variables,
        cwd=tmp_path,
    )
    try:
        ProgramLines(server).wait_for(lambda line: line.startswith("ready "), 60, what="the line `ready`")
        assert healthy()
        assert one_of(SERVER, "STOPSIGNAL") == "SIGTERM"
        server.terminate()
        assert server.wait(60) == 0
        assert not healthy()
    finally:
        server.kill()
        server.wait()
    assert (tmp_path / "topics.sqlite").exists()
