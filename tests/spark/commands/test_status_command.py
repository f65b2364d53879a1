"""``broker-core spark status``: of the store alone, and of a running broker."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from broker_core.errors import BrokerCoreError
from broker_core.names import Mode
from broker_core.testing import serve
from broker_core_spark.commands import status_command
from broker_core_spark.commands.status_command import read_metrics, read_problems
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.store import open_store
from broker_core_spark.store.build_records import write_build_record
from broker_core_spark.store.publishing import begin_build
from tests.cli.conftest import Cli
from tests.support.generation_builder import build_generation
from tests.support.narrowed import present
from tests.support.spark_model import CatalogueModel, publish


def status(cli: Cli, *options: object) -> dict[str, Any]:
    said = cli("spark", "status", "--json", *options)
    assert said.code == 0, said.err
    report: dict[str, Any] = json.loads(said.out)
    return report


async def test_the_store_and_the_broker_are_shown(tmp_path: Path, cli: Cli) -> None:
    store = tmp_path / "generations"
    tables: dict[str, dict[str, Any]] = {
        "http": {"listen": "127.0.0.1:0"},
        "catalog": {"property_keys": ["team"]},
        "plugins": {"spark": {"store": str(store), "refresh": "1h"}},
    }
    plugin = SparkPlugin()
    async with serve({"spark": plugin}, settings=tables) as server:
        model = CatalogueModel(server)
        await model.fill(["persistent://public/default/a", "persistent://public/default/b"], Random(1))
        published = await publish(str(store), model, [("public/default", Mode.PERSISTENT, None, {})])
        alone = await asyncio.to_thread(status, cli, "--store", store, "--broker", "127.0.0.1:1")
        assert alone["served"] is None
        assert "127.0.0.1:1" in alone["broker"]
        shown = alone["published"]
        assert (shown["generation"], shown["number"], shown["questions"]) == (published.generation, 1, 1)
        assert shown["catalogue"] == model.catalog.catalog_id
        assert shown["bytes"] > 0

        await plugin.lister.refresher.refresh()
        for pattern in (None, None, None, "other"):
            await server.list("public/default", pattern=pattern)
        url = "http://{}:{}".format(*present(server.broker.http_address))
        served = (await asyncio.to_thread(status, cli, "--store", store, "--broker", url))["served"]
        assert served["generation"] == published.generation
        assert (served["last_hour_questions"], served["last_hour_coverage"]) == (4, 0.75)
        assert (served["overlay_names"], served["refused"]) == (0, False)
        assert served["passed"] == {"not_registered": 1}
        assert served["mapped_bytes"] > 0
        table = await asyncio.to_thread(cli, "spark", "status", "--store", store, "--broker", url)
        assert "75.00%" in table.out
        assert published.generation in table.out


async def test_why_a_generation_is_refused_is_shown(tmp_path: Path, cli: Cli) -> None:
    store = tmp_path / "generations"
    tables: dict[str, dict[str, object]] = {
        "http": {"listen": "127.0.0.1:0"},
        "plugins": {"spark": {"store": str(store), "refresh": "1h"}},
    }
    plugin = SparkPlugin()
    async with serve({"spark": plugin}, settings=tables) as server:
        model = CatalogueModel(server)
        await model.fill(["persistent://public/default/a"], Random(1))
        await publish(str(store), model, [("public/default", Mode.PERSISTENT, None, {})])
        (segment,) = (store / "segments").iterdir()
        whole = segment.read_bytes()
        segment.chmod(0o644)
        segment.write_bytes(whole[:-3])
        await plugin.lister.refresher.refresh()
        (shown,) = server.broker.pipeline.dispatcher.describe_without_errors()
        assert shown["state"] == "error"
        assert segment.name in shown["problems"][0]
        options = ("--store", store, "--broker", "http://{}:{}".format(*present(server.broker.http_address)))
        served = (await asyncio.to_thread(status, cli, *options))["served"]
        assert served["refused"]
        assert served["problems"] == shown["problems"]
        table = await asyncio.to_thread(cli, "spark", "status", *options)
        assert segment.name[:20] in table.out
        segment.write_bytes(whole)
        await publish(str(store), model, [("public/default", Mode.ALL, None, {})])
        await plugin.lister.refresher.refresh()
        (shown,) = server.broker.pipeline.dispatcher.describe_without_errors()
        assert (shown["state"], shown["problems"]) == ("enabled", [])


@pytest.mark.parametrize(
    "text", ["", "{}", '{"plugins": [1]}', "[" * 100_000], ids=["nothing", "none", "foreign", "deep"]
)
def test_plugins_that_cannot_be_read_are_said(text: str) -> None:
    with pytest.raises(BrokerCoreError, match="/plugins"):
        read_problems(text)


def test_a_problem_that_could_not_be_printed_is_shown() -> None:
    assert read_problems('{"plugins": [{"name": "spark", "problems": ["a\\ud800"]}]}') == ["a?"]


def test_an_empty_store_is_no_error(tmp_path: Path, cli: Cli) -> None:
    shown = status(cli, "--store", tmp_path / "nothing", "--broker", "127.0.0.1:1")["published"]
    assert shown["generation"] is None


def test_who_built_what_is_published_is_shown(tmp_path: Path, cli: Cli) -> None:
    store = open_store(str(tmp_path))
    manifest = build_generation(store, {"a/b": {"persistent": ["x"]}}, [], catalogue_id="some-id")
    with begin_build(store) as building:
        building.publish(manifest)
    record = {
        "generation": manifest.id,
        "builder": {"user": "ann", "host": "host1", "pid": 7},
        "began": "2026-03-01T10:15:00+00:00",
        "seconds": {"total": 2.5},
        "catalogue": "postgresql://db/topics",
        "coverage": 0.25,
        "differences": None,
        "matches": [],
    }
    write_build_record(store, manifest.id, record, b"")
    shown = status(cli, "--store", tmp_path, "--broker", "127.0.0.1:1")["published"]
    assert {key: value for key, value in shown.items() if key.startswith(("build_", "built_"))} == {
        "built_by": "ann@host1",
        "build_began": "2026-03-01T10:15:00+00:00",
        "build_seconds": 2.5,
        "built_from": "postgresql://db/topics",
        "build_coverage": 0.25,
    }
    assert "25.00%" in cli("spark", "status", "--store", tmp_path, "--broker", "127.0.0.1:1").out


def test_builds_under_way_and_dead_ones_are_shown_with_their_owners(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from broker_core_spark.store import open_store
    from broker_core_spark.store.publishing import begin_build

    place = ("--store", tmp_path, "--broker", "127.0.0.1:1")
    with begin_build(open_store(str(tmp_path))) as build:
        (mark,) = status(cli, *place)["under_way"]
        assert (mark["kind"], mark["run"], mark["live"]) == ("build", build.run.id, True)
        assert f"process {os.getpid()}, " in mark["owner"]
        monkeypatch.setattr("broker_core_spark.store.build_and_gc_marks.SILENCE", timedelta(0))
        shown = cli("spark", "status", *place)
        assert f"build that has died: run {build.run.id} of " in shown.out
    assert status(cli, *place)["under_way"] == []


def test_a_manifest_that_was_changed_is_told(tmp_path: Path, cli: Cli) -> None:
    from broker_core_spark.store import open_store
    from broker_core_spark.store.publishing import begin_build
    from tests.support.generation_builder import build_generation

    store = open_store(str(tmp_path))
    with begin_build(store) as build:
        manifest = build_generation(store, {"t/n": {"persistent": ["a"]}}, [], catalogue_id="one")
        build.publish(manifest)
    file = tmp_path / "manifests" / f"{manifest.id}.json"
    file.chmod(0o644)
    file.write_bytes(file.read_bytes().replace(b"one", b"two"))
    shown = status(cli, "--store", tmp_path, "--broker", "127.0.0.1:1")["published"]
    assert shown["generation"] == manifest.id
    assert manifest.id in shown["error"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "does not run this plugin"),
        ("broker_core_spark_refused one\n", "cannot be read"),
        ("broker_core_spark_refused 0\nbroker_core_spark_topics +Inf\n", "cannot be read"),
        (
            'broker_core_spark_refused 0\nbroker_core_spark_last_hour_questions{outcome="passed"} NaN\n',
            "cannot",
        ),
        ('broker_core_spark_refused 0\nbroker_core_spark_generation_info{number="x"} 1\n', "cannot be read"),
    ],
    ids=["other", "broken", "endless", "none", "number"],
)
def test_metrics_that_say_nothing_are_an_error(text: str, problem: str) -> None:
    with pytest.raises(BrokerCoreError, match=problem):
        read_metrics(text)


def test_a_pointer_that_cannot_be_read_is_shown_with_the_last_that_can(tmp_path: Path, cli: Cli) -> None:
    store = open_store(str(tmp_path))
    with begin_build(store) as build:
        made = build_generation(store, {"t/n": {"persistent": ["a"]}}, [], catalogue_id="c")
        build.publish(made)
    (tmp_path / "pointers" / "000000000099.json").write_bytes(bytes(range(128, 256)))
    shown = status(cli, "--store", tmp_path, "--broker", "127.0.0.1:1")["published"]
    assert (shown["generation"], shown["number"], shown["topics"]) == (made.id, 1, 1)
    assert "broker-core spark use" in shown["error"]
    assert [text.partition(": ")[0] for text in shown["unreadable_pointers"]] == [
        "pointers/000000000099.json"
    ]
    table = cli("spark", "status", "--store", tmp_path, "--broker", "127.0.0.1:1").printed
    assert "pointers/000000000099.json: it is no pointer to a generation" in table


def test_what_is_empty_is_shown_as_nothing() -> None:
    report: dict[str, Any] = {"problems": [], "passed": {}, "number": None, "refused": True}
    rows = [("problems", "-"), ("passed", "-"), ("number", "-"), ("refused", True)]
    assert status_command._rows(report) == rows
    assert status_command._rows({"problems": ["a", "b"]}) == [("problems", "a; b")]
