"""The project of `broker-core plugins new`: installed, linted, tested and served."""

from __future__ import annotations

import inspect
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from broker_core.client import LookupSession
from tests.docs.page_runner import PageRunner, environment_of_its_own
from tests.docs.pages import Block, blocks_of, write_recipes
from tests.support.fresh_environment import ROOT, fresh_environment, install_projects, of_core, run_program
from tests.support.postgres_server import PostgresServer
from tests.support.served import Served

NAME = "acme-topics"
TOOLS = Path(sys.executable).parent
EXAMPLE = ROOT / "examples" / "tenant_filter_plugin"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory, wheels: list[Path]) -> Path:
    """The programs of an environment with broker-core alone."""
    return fresh_environment(tmp_path_factory.mktemp("fresh"), [of_core(wheels)])


@pytest.fixture(scope="module")
def project(core: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as the installed command writes it."""
    folder = tmp_path_factory.mktemp("written")
    run_program([core / "broker-core", "plugins", "new", NAME], cwd=folder)
    return folder / NAME


@pytest.fixture(scope="module")
def environment(core: Path, project: Path) -> Path:
    install_projects(core, project)
    return core


@pytest.fixture(scope="module")
def server(project: Path, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = tomllib.loads((project / "broker-core.toml").read_text(encoding="utf-8"))
    settings["pulsar"] = settings["http"] = {"listen": "127.0.0.1:0"}
    with Served(tmp_path_factory.mktemp("served"), settings, command=environment / "broker-core") as served:
        yield served


def test_its_own_tests_pass_without_a_warning(project: Path, environment: Path) -> None:
    said = run_program([environment / "python", "-m", "pytest", "-p", "no:cacheprovider"], cwd=project)
    assert " passed in " in said
    assert "warning" not in said.lower()
    assert "skipped" not in said


def test_it_is_clean(project: Path) -> None:
    run_program([TOOLS / "ruff", "check", "--no-cache"], cwd=project)
    run_program([TOOLS / "ruff", "format", "--check", "--no-cache"], cwd=project)


def test_its_types_and_those_of_the_recipes(
    project: Path, environment: Path, tmp_path: Path, cache: pytest.Cache
) -> None:
    """In one run, with what mypy found the last time: what takes it long is broker-core and its dependencies.

    It knows a module again by its contents, wherever it is installed.
    """
    folder = tmp_path / NAME
    shutil.copytree(project, folder)
    write_recipes(folder / "src", folder / "tests")
    options = ["--python-executable", environment / "python", "--cache-dir", cache.mkdir("types-of-plugins")]
    run_program([TOOLS / "mypy", *options], cwd=folder)


async def test_it_is_served(server: Served) -> None:
    async with LookupSession(server.service_url) as client:
        answer = await client.get_topics("public/default", pattern="public/default/orders-.*")
        assert sorted(answer.topics) == [
            f"persistent://public/default/orders-{region}" for region in ("eu", "us")
        ]
        assert (await client.get_topics("public/other")).topics == []


def test_the_readme_tells_the_truth(project: Path, tmp_path: Path, wheels: list[Path]) -> None:
    def no_server() -> PostgresServer:
        raise AssertionError("the page needs no database")

    settings = (project / "broker-core.toml").read_text(encoding="utf-8")
    try:
        with PageRunner(project, environment_of_its_own(tmp_path, wheels), no_server) as runner:
            # With the ports of the runner.
            runner.run(Block("broker-core.toml", 1, "toml", "# broker-core.toml\n" + settings))
            first, second, tools = blocks_of((project / "README.md").read_text(encoding="utf-8"), "README.md")
            runner.run(first)
            runner.run(second)
            # An extra, not a group of dependencies: the pip of Python 3.11 knows no groups.
            install = tools.text.splitlines()[0]
            assert install == "$ pip install --quiet --editable '.[test]'"
            runner.run(replace(tools, text=install + "\n"))
    finally:
        (project / "broker-core.toml").write_text(settings, encoding="utf-8")


def loaded(name: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package or a module from its file."""
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def hooks_of(plugin: object) -> dict[str, Any]:
    return {name: getattr(plugin, name) for name in dir(plugin) if name.startswith("broker_core_")}


def test_the_example_to_copy_is_written_the_same_way(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short example has nothing that the written plugin would do otherwise, besides its mask."""
    written = hooks_of(
        loaded("acme_topics", project / "src" / "acme_topics" / "__init__.py", monkeypatch).plugin
    )
    example = hooks_of(loaded("tenant_filter", EXAMPLE / "tenant_filter.py", monkeypatch).plugin)
    assert set(example) - set(written) == {"broker_core_visible"}
    assert len(set(example) & set(written)) >= 3
    for hook in set(example) & set(written):
        ours, theirs = inspect.signature(written[hook]), inspect.signature(example[hook])
        assert inspect.iscoroutinefunction(written[hook]) == inspect.iscoroutinefunction(example[hook])
        assert shape(theirs.return_annotation) == shape(ours.return_annotation)
        for name, parameter in theirs.parameters.items():
            assert shape(parameter.annotation) == shape(ours.parameters[name].annotation)
    theirs_toml, ours_toml = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        for folder in (EXAMPLE, project)
    )
    assert theirs_toml["build-system"] == ours_toml["build-system"]
    for key in ("requires-python", "license"):
        assert theirs_toml["project"][key] == ours_toml["project"][key]
    for toml in (theirs_toml, ours_toml):
        ((name, target),) = toml["project"]["entry-points"]["broker_core"].items()
        assert target.endswith(":plugin")
        assert name in {toml["project"]["name"], toml["project"]["name"].removesuffix("-plugin")}


def shape(annotation: object) -> str:
    """An annotation without the module of a plugin's own class."""
    name = getattr(annotation, "__qualname__", None)
    return name if isinstance(name, str) and "[" not in str(annotation) else str(annotation)
