"""The example distribution, installed from its wheel beside broker-core's into a fresh environment, and served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.client import LookupSession
from broker_core.names import Mode
from tests.support.fresh_environment import ROOT, fresh_environment, install_projects, of_core, run_program
from tests.support.served import Served

EXAMPLE = ROOT / "examples" / "tenant_filter_plugin"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheels: list[Path]) -> Path:
    programs = fresh_environment(tmp_path_factory.mktemp("fresh"), [of_core(wheels)])
    install_projects(programs, EXAMPLE)
    return programs


SETTINGS = {
    "plugins": {
        "enabled": ["tenant-filter"],
        "tenant-filter": {
            "deadline": "60s",
            "topics": {"public/default": ["acme.orders", "umbrella.orders", "shared.news"]},
        },
    }
}


@pytest.fixture(scope="module")
def server(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("served"), SETTINGS, command=environment / "broker-core") as served:
        yield served


async def test_a_tenant_sees_its_topics_and_the_shared_ones(server: Served) -> None:
    async with LookupSession(server.service_url) as client:
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
    async with LookupSession(server.service_url) as client:
        answer = await client.get_topics(
            "public/default", Mode.PERSISTENT, pattern=r".*\.orders", properties={"tenant": "acme"}
        )
        assert answer.filtered
        assert answer.topics == ["persistent://public/default/acme.orders"]


async def test_what_the_plugin_does_not_list_comes_from_the_catalogue(server: Served) -> None:
    async with LookupSession(server.service_url) as client:
        assert (await client.get_topics("public/other", Mode.PERSISTENT)).topics == []
        assert (await client.get_topics("public/default", Mode.NON_PERSISTENT)).topics == []


def test_the_command_line_shows_the_plugin(environment: Path, server: Served) -> None:
    shown = run_program([environment / "broker-core", "plugins", "--config", server.config], cwd=ROOT.parent)
    for text in ("tenant-filter", "1.0.0"):
        assert text in shown


def test_the_readme_of_the_example_tells_the_truth(environment: Path, server: Served) -> None:
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    command = "broker-core list public/default --property tenant=acme"
    said = readme.split(f"$ {command}\n")[1].split("```")[0]
    asked = [environment / "broker-core", *command.split()[1:], "--url", server.service_url]
    assert sorted(run_program(asked, cwd=ROOT.parent).split()) == sorted(said.split())


@pytest.mark.parametrize("topics", [{"public": ["acme.orders"]}, {"public/default": ["a b//x"]}])
def test_wrong_names_are_found_before_a_start(
    environment: Path, tmp_path: Path, topics: dict[str, list[str]]
) -> None:
    table = ", ".join(f'"{namespace}" = {names}' for namespace, names in topics.items())
    (tmp_path / "broker-core.toml").write_text(
        f'[plugins]\nenabled = ["tenant-filter"]\n[plugins.tenant-filter]\ntopics = {{ {table} }}\n',
        encoding="utf-8",
    )
    with pytest.raises(AssertionError, match=r"tenant-filter.*Invalid"):
        run_program([environment / "broker-core", "check", "--config", "broker-core.toml"], cwd=tmp_path)
