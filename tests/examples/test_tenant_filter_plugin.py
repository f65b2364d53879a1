"""The example distribution, installed from its wheel beside broker-core's into a fresh environment, and served."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.client import LookupClient
from broker_core.names import Mode
from tests.support.served import Served

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "tenant_filter_plugin"


def _build(project: Path, into: Path) -> Path:
    before = set(into.glob("*.whl"))
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)], cwd=project)
    (wheel,) = set(into.glob("*.whl")) - before
    return wheel


def _run(command: list[str], *, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment with the two distributions, installed from wheels; its ``bin`` folder.

    What they depend on is taken from the environment that runs the tests, so that nothing is fetched: a ``.pth`` file
    puts its packages behind the fresh ones (the ``.pth`` files in there, such as that of an editable install, do not
    count then).
    """
    folder = tmp_path_factory.mktemp("fresh")
    wheels = folder / "wheels"
    wheels.mkdir()
    built = [_build(ROOT, wheels), _build(EXAMPLE, wheels)]
    venv = folder / "venv"
    _run([sys.executable, "-m", "venv", "--without-pip", str(venv)], cwd=folder)
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    uv = Path(sys.executable).parent / "uv"
    _run(
        [str(uv), "pip", "install", "--quiet", "--no-config", "--offline", "--no-index", "--no-deps",
         "--python", str(venv / "bin" / "python"), *map(str, built)],
        cwd=folder,
    )  # fmt: skip
    where = _run(
        [str(venv / "bin" / "python"), "-c", "import broker_core; print(broker_core.__file__)"], cwd=folder
    )
    assert Path(where.strip()).is_relative_to(packages), "broker_core is not the one of the wheel"
    return venv / "bin"


SETTINGS = {
    "plugins": {
        "enabled": ["tenant-filter"],
        "tenant-filter": {
            "deadline": "2s",
            "topics": {"public/default": ["acme.orders", "umbrella.orders", "shared.news"]},
        },
    }
}


@pytest.fixture(scope="module")
def server(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("served"), SETTINGS, command=environment / "broker-core") as served:
        yield served


async def test_a_tenant_sees_its_topics_and_the_shared_ones(server: Served) -> None:
    async with LookupClient(server.service_url) as client:
        for tenant, seen in {
            "acme": ["acme.orders", "shared.news"],
            "umbrella": ["shared.news", "umbrella.orders"],
            None: ["shared.news"],
        }.items():
            answer = await client.get_topics(
                "public/default", Mode.PERSISTENT, properties={"tenant": tenant} if tenant else None
            )
            assert sorted(answer.topics) == [f"persistent://public/default/{name}" for name in seen]


async def test_the_pattern_of_the_client_holds_too(server: Served) -> None:
    async with LookupClient(server.service_url) as client:
        answer = await client.get_topics(
            "public/default", Mode.PERSISTENT, pattern=r".*\.orders", properties={"tenant": "acme"}
        )
        assert answer.filtered
        assert answer.topics == ["persistent://public/default/acme.orders"]


async def test_what_the_plugin_does_not_list_comes_from_the_catalogue(server: Served) -> None:
    async with LookupClient(server.service_url) as client:
        assert (await client.get_topics("public/other", Mode.PERSISTENT)).topics == []
        assert (await client.get_topics("public/default", Mode.NON_PERSISTENT)).topics == []


def test_the_command_line_shows_the_plugin(environment: Path, server: Served) -> None:
    shown = _run(
        [str(environment / "broker-core"), "plugins", "--config", str(server.config)], cwd=ROOT.parent
    )
    for text in ("tenant-filter", "1.0.0"):
        assert text in shown


def test_the_readme_of_the_example_tells_the_truth(environment: Path, server: Served) -> None:
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    command = "broker-core list public/default --property tenant=acme"
    said = readme.split(f"$ {command}\n")[1].split("```")[0]
    asked = [str(environment / "broker-core"), *command.split()[1:], "--url", server.service_url]
    assert sorted(_run(asked, cwd=ROOT.parent).split()) == sorted(said.split())
