"""Between two builds of a table the brokers have its changes, and answer as a build of now would."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core.client import ServerRefused
from broker_core.listing.listing_hash import topics_hash
from broker_core.testing import serve
from broker_core_spark.batch import followed_table as followed
from broker_core_spark.batch.build_errors import BatchError, InvalidCatalogue
from broker_core_spark.batch.followed_table import follow_table
from broker_core_spark.batch.job import build
from broker_core_spark.batch.sources import parquet_and_tables
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.store import open_store
from broker_core_spark.store.table_changes_file import newest_changes
from tests.support.narrowed import present
from tests.support.spark_catalogues import fill, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Table:
    """A Parquet file with a column of versions, which a test changes, and what was built of it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.rows: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.given: dict[str, Any] = {
            "catalogue": str(folder / "topics.parquet"),
            "store": str(folder / "store"),
            "namespace": "a/b",
            "changes": "version",
        }

    def put(self, *names: str, region: str = "eu", deleted: bool = False) -> None:
        """Write rows in place of those of the names, as one change."""
        self.version += 1
        for name in names:
            self.rows[name] = {
                "name": name,
                "version": self.version,
                "deleted": deleted,
                "properties": '{"region": "' + region + '"}',
            }
        pq.write_table(pa.Table.from_pylist(list(self.rows.values())), self.given["catalogue"])

    def listed(self, region: str | None = None, *, ending: str = "") -> list[str]:
        return sorted(
            f"persistent://a/b/{name}"
            for name, row in self.rows.items()
            if not row["deleted"]
            and name.endswith(ending)
            and (region is None or region in row["properties"])
        )

    def build(self, **more: Any) -> Any:
        patterns: list[dict[str, Any]] = [{"namespace": "a/b"}, {"namespace": "a/b", "pattern": ".*7"}]
        patterns.append({"namespace": "a/b", "properties": {"region": "us"}})
        path = write_patterns(self.folder / "patterns.jsonl", patterns)
        return build(self.spark, patterns=str(path), property_keys=["region"], **self.given, **more)

    def follow(self, **more: Any) -> Any:
        return follow_table(self.spark, **{**self.given, **more})


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    made = Table(spark, tmp_path)
    made.put(*(f"t-{number}" for number in range(40)))
    return made


async def test_brokers_answer_with_the_table_of_the_last_look(table: Table) -> None:
    await asyncio.to_thread(table.build)
    plugin = SparkPlugin()
    tables: dict[str, dict[str, Any]] = {
        "catalog": {"property_keys": ["region"]},
        "plugins": {"spark": {"store": table.given["store"], "refresh": "1h", "max_age": "1h"}},
    }
    async with serve({"spark": plugin}, settings=tables) as server:

        async def check() -> None:
            await plugin.lister.refresher.refresh()
            served = plugin.lister.counts.answers.total()
            for pattern, properties, expected in (
                (None, {}, table.listed()),
                (".*7", {}, table.listed(ending="7")),
                (None, {"region": "us"}, table.listed("us")),
            ):
                answer = await server.list("a/b", pattern=pattern, properties=properties)
                assert answer.topics == expected
                assert answer.topics_hash == topics_hash(expected)
            assert plugin.lister.counts.answers.total() == served + 3

        def follows() -> str:
            return present(plugin.lister.refresher.served).follows

        await check()
        assert follows() == "max_age"
        for numbers, region, deleted in (
            ((7, 16, 47), "us", False),  # changed ones, and one that is new
            ((3, 16, 47), "eu", True),
            ((16, 27, 34), "us", False),  # one of them again
        ):
            names = [f"t-{number}" for number in numbers]
            await asyncio.to_thread(table.put, *names, region=region, deleted=deleted)
            await asyncio.to_thread(table.follow)
            await check()
            assert follows() == "changes"
            # A broker that starts has the look before its first answer.
            beside = SparkPlugin()
            async with serve({"spark": beside}, settings=tables) as other:
                assert (await other.list("a/b")).topics == table.listed()
        # An incremental build of the same state has the same topics, and begins a new chain of looks.
        result = await asyncio.to_thread(table.build, incremental=True)
        assert result.full_because == ""
        await check()
        full = await asyncio.to_thread(table.build)
        assert full.generation == result.generation
        # Too long ago: nobody knows.
        look = await asyncio.to_thread(table.follow)
        assert (look.number, dict(look.names)) == (1, {})
        await check()
        served = present(plugin.lister.refresher.served)
        served._settings = served._settings.model_copy(update={"max_age": 1e-9})
        assert follows() == "nothing"
        with pytest.raises(
            ServerRefused, match="and it is older than max_age, and no other lister of this broker has a/b"
        ):
            await server.list("a/b")
        assert plugin.lister.counts.passed["too_old"] == 1


def test_a_look_has_all_names_of_the_looks_before(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.build()
    store = open_store(table.given["store"])
    assert table.follow().names == {}
    table.put("t-1", region="us")
    table.put("t-99")
    table.put("t-2", deleted=True)
    there = ("a/b", "persistent", "t-99")
    second = table.follow()
    assert second.names == {
        ("a/b", "persistent", "t-1"): {"region": "us"},
        there: {"region": "eu"},
        ("a/b", "persistent", "t-2"): None,
    }
    assert newest_changes(store, second.generation) == second
    table.put("t-99", deleted=True)
    monkeypatch.setattr(parquet_and_tables, "_FEW_NAMES", 2)
    third = table.follow()
    assert third.names == {**second.names, there: None}
    assert third.number == 3
    monkeypatch.setattr(followed, "MOST_CHANGED", 2)
    with pytest.raises(BatchError, match=r"3 names changed since the generation, more than 2: build again"):
        table.follow()


def test_what_cannot_be_followed_is_said(table: Table, tmp_path: Path) -> None:
    with pytest.raises(BatchError, match="nothing is published there: build first"):
        table.follow()
    table.build()
    with pytest.raises(BatchError, match="a Parquet file has no versions: it cannot be followed"):
        table.follow(changes=None)
    with pytest.raises(BatchError, match="built with another --namespace or --where: build again"):
        table.follow(namespace="a/c")
    with pytest.raises(InvalidCatalogue, match="no column 'nothing' with versions among name, version"):
        table.follow(changes="nothing")
    with pytest.raises(InvalidCatalogue, match="'name' with versions is of the type string: whole numbers"):
        table.follow(changes="name")
    with pytest.raises(InvalidCatalogue, match="its column 'deleted' says so, and there is no condition"):
        table.follow(where="name <> 't-1'")
    fill(tmp_path / "catalogue.sqlite", {"a/b": ["x"]})
    with pytest.raises(BatchError, match="only a table is followed so"):
        table.follow(catalogue=str(tmp_path / "catalogue.sqlite"), changes=None)
    table.version = -5
    table.put(*table.rows)
    with pytest.raises(BatchError, match="of a later state of this one: build again"):
        table.follow()
    table.given["changes"] = None
    table.build()
    table.given["changes"] = "version"
    with pytest.raises(BatchError, match="is of no table with versions: build it of Iceberg or Delta"):
        table.follow()
