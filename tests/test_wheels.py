"""Wheels and source distributions of all four: what is in them, and that they work when installed."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.client import LookupSession
from tests.support.distributions import CORE, DISTRIBUTIONS, ROOT, Distribution
from tests.support.fresh_environment import build, fresh_environment, of_core, run_program
from tests.support.served import Served

every = pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)

#: What is in the tree for those who change the code alone: modules are made of it.
NOT_IN_WHEELS = ("broker_core/wire/kafka/definitions/", "broker_core/wire/pulsar/messages/pulsar_api.proto")


def tracked(folder: Path) -> set[str]:
    """The files of a folder that are not ignored, by their path in it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this is no clone: only git knows what belongs to the tree")
    return {name for name in done.stdout.decode().split("\0") if name and (folder / name).is_file()}


def stem(distribution: Distribution) -> str:
    return f"{distribution.package}-{distribution.project['version']}"


def wheel_of(distribution: Distribution, built: list[Path]) -> zipfile.ZipFile:
    (path,) = (path for path in built if path.name == f"{stem(distribution)}-py3-none-any.whl")
    return zipfile.ZipFile(path)


def sdist_of(distribution: Distribution, built: list[Path]) -> Path:
    (path,) = (path for path in built if path.name == f"{stem(distribution)}.tar.gz")
    return path


@every
def test_a_wheel_has_the_whole_package_and_the_licenses(
    distribution: Distribution, distributions: list[Path]
) -> None:
    info = f"{stem(distribution)}.dist-info"
    with wheel_of(distribution, distributions) as wheel:
        names = set(wheel.namelist())
        for name in distribution.project["license-files"]:
            assert wheel.read(f"{info}/licenses/{name}") == (ROOT / name).read_bytes()
    assert f"{distribution.package}/py.typed" in names
    package = {f"{distribution.package}/{name}" for name in tracked(distribution.sources)}
    modules = {name for name in package if not name.startswith(NOT_IN_WHEELS)}
    assert {name for name in names if not name.startswith(info)} == modules


def test_the_source_distribution_of_the_core_is_the_whole_tree(distributions: list[Path]) -> None:
    """With the tests of all four, and all that `make setup` and `make test` need."""
    with tarfile.open(sdist_of(CORE, distributions)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names - {"PKG-INFO"} == tracked(ROOT)


@every
def test_a_source_distribution_builds_the_same_wheel(
    distribution: Distribution, distributions: list[Path], tmp_path: Path
) -> None:
    with tarfile.open(sdist_of(distribution, distributions)) as archive:
        archive.extractall(tmp_path, filter="data")
    (project,) = tmp_path.iterdir()
    built = tmp_path / "built"
    built.mkdir()
    again = build(project, built, "wheel")
    with wheel_of(distribution, again) as theirs, wheel_of(distribution, distributions) as ours:
        assert {each.filename: each.CRC for each in theirs.infolist()} == {
            each.filename: each.CRC for each in ours.infolist()
        }


# -- installed; tests/examples/test_new_plugin.py writes and tests a plugin in such an environment


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, wheels: list[Path]) -> Path:
    return fresh_environment(tmp_path_factory.mktemp("fresh"), wheels)


@pytest.fixture(scope="module")
def server(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    tables = {"catalog": {"path": str(folder / "topics.sqlite")}, "http": {"listen": "127.0.0.1:0"}}
    with Served(folder, tables, command=programs / "broker-core") as served:
        yield served


def test_the_command_says_the_version(programs: Path, tmp_path: Path) -> None:
    said = run_program([programs / "broker-core", "--version"], cwd=tmp_path)
    assert said == f"broker-core {CORE.project['version']}\n"


def test_the_plugins_are_found(programs: Path, tmp_path: Path) -> None:
    said = run_program([programs / "broker-core", "plugins"], cwd=tmp_path)
    for distribution in DISTRIBUTIONS[1:]:
        assert distribution.name in said
    for command in (["postgres", "migrate", "--help"], ["spark", "build", "--help"]):
        assert "Usage" in run_program([programs / "broker-core", *command], cwd=tmp_path)


def test_without_the_plugins_there_are_none(tmp_path: Path, wheels: list[Path]) -> None:
    alone = fresh_environment(tmp_path / "fresh", [of_core(wheels)])
    said = run_program([alone / "broker-core", "plugins"], cwd=tmp_path)
    assert "postgres" not in said
    assert "spark" not in said


async def test_it_serves_and_lists(programs: Path, server: Served, tmp_path: Path) -> None:
    topic = "persistent://public/default/orders"
    command = [programs / "broker-core", "topics", "create", topic, "--config", server.config]
    run_program(command, cwd=tmp_path)
    listed = [programs / "broker-core", "list", "public/default", "--url", server.service_url]
    assert run_program(listed, cwd=tmp_path) == f"{topic}\n"
    async with LookupSession(server.service_url) as client:
        assert (await client.get_topics("public/default")).topics == [topic]
