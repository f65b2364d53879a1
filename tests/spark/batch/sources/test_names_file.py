"""Lists of names as catalogues of a batch: of a file, and of a running server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from broker_core.names import NamespaceName
from broker_core.plugin_cli import BrokerUnreachable, RunningBroker
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.sources import names_file
from broker_core_spark.batch.sources.catalogue_source import STATIC_ID
from broker_core_spark.batch.sources.names_file import NamesSource
from broker_core_spark.batch.sources.open_catalogue import check_catalogue, open_catalogue
from tests.support.api_serving import api_served
from tests.support.files import file_with
from tests.support.spark_catalogues import Names, staged_names, staging_area

NO_SPARK: Any = None  # it is read by the driver


def _read(server: RunningBroker, folder: Path) -> tuple[str, Names]:
    check_catalogue(server, namespace="public/default")
    source = open_catalogue(server, spark=NO_SPARK, namespace="public/default")
    place = staging_area(folder, "region")
    with source.snapshot() as snapshot:
        assert source.static
        return snapshot.catalogue_id, staged_names(place, snapshot.read(place))


@pytest.mark.parametrize("page", [1, 3, 10_000])
async def test_names_of_both_domains_and_their_properties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(names_file, "_PAGE", page)
    async with api_served(tmp_path) as served:
        found = await asyncio.to_thread(_read, RunningBroker(served.url), tmp_path)
    assert found == (
        STATIC_ID,
        {
            ("public/default", "persistent", "orders-partition-0"): "eu",
            ("public/default", "persistent", "orders-partition-1"): "eu",
            ("public/default", "persistent", "bills"): "us",
            ("public/default", "non-persistent", "ticks"): None,
        },
    )


async def test_a_namespace_without_topics_is_an_error(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        server = RunningBroker(served.url)
        with pytest.raises(
            InvalidCatalogue, match="lists no topics of public/nowhere: the name may be wrong"
        ):
            await asyncio.to_thread(check_catalogue, server, namespace="public/nowhere")
        with pytest.raises(InvalidCatalogue, match="say of which namespace by --namespace"):
            check_catalogue(server)
        with pytest.raises(InvalidCatalogue, match="--where and --changes are for rows"):
            check_catalogue(server, namespace="public/default", where="x")
    with pytest.raises(BrokerUnreachable, match="is the server running"):
        check_catalogue(server, namespace="public/default")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"items": ["t"], "next": None},
        {"items": [{"name": "t"}], "next": None},
        {"items": [{"name": "t", "properties": {}}], "next": 1},
        {"items": [{"name": "t", "properties": {}}], "next": "again"},
        {"items": [], "next": "x"},
        {"items": [{"name": "persistent://other/place/t", "properties": {}}], "next": None},
        {"items": [{"name": "t", "properties": {"k": 1}}], "next": None},
    ],
    ids=json.dumps,
)
def test_answers_of_another_server(
    answer: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunningBroker, "json", lambda _server, _path: answer)
    with pytest.raises(InvalidCatalogue, match="http://elsewhere"):
        _read(RunningBroker("http://elsewhere"), tmp_path)


def test_a_file_of_names_has_the_rules_of_an_import(tmp_path: Path) -> None:
    path = file_with(
        tmp_path / "names.jsonl",
        '{"name": "t", "partitions": 2, "properties": {"k": "v"}}\n{"name": "non-persistent://a/b/n"}\n',
    )
    place = staging_area(tmp_path, "k")
    with NamesSource(path, NamespaceName.parse("a/b"), str(path)).snapshot() as snapshot:
        assert (snapshot.catalogue_id, snapshot.version("t/n")) == (STATIC_ID, None)
        assert snapshot.unversioned == "a list of names has no versions"
        found = staged_names(place, snapshot.read(place))
    assert found == {
        ("a/b", "persistent", "t-partition-0"): "v",
        ("a/b", "persistent", "t-partition-1"): "v",
        ("a/b", "non-persistent", "n"): None,
    }
    path.write_text("fine\n\n", encoding="utf-8")
    with (
        pytest.raises(InvalidCatalogue, match="line 2"),
        NamesSource(path, NamespaceName.parse("a/b"), str(path)).snapshot(),
    ):
        pass
