"""Details of topics in the catalogue: partitions, ids and properties as they were written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from broker_core import Details, NamespaceName, TopicName
from broker_core.catalog import topic_details
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_decisions import creation
from broker_core.catalog.topic_details import describe, described_bytes
from broker_core.listing.details import DETAIL_TYPES, check_values
from tests.catalog.filled import bring
from tests.support.narrowed import present

NAMESPACE = NamespaceName("t", "n")
WANTS = frozenset({"partitions", "topic_id", "properties", "created"})


@pytest.fixture
def catalog(tmp_path: Path) -> SqliteCatalog:
    catalog = SqliteCatalog(tmp_path / "c.sqlite")
    make = catalog.create
    make(TopicName.parse("persistent://t/n/plain"))
    make(
        TopicName.parse("persistent://t/n/parted"),
        partitions=12,
        properties={"team": "shop", 'a"\n': "é\U0001f600"},
    )
    bring(catalog, "sparse-partition-7", namespace=NAMESPACE)
    make(TopicName.parse("non-persistent://t/n/plain"), properties={"other": "domain"})
    make(TopicName.parse("persistent://t/other/plain"))
    return catalog


def read(catalog: SqliteCatalog, *names: str, wants: frozenset[str] = WANTS) -> Details:
    column = pa.array(names, pa.large_string())
    with catalog.reading() as connection:
        assert described_bytes(connection, NAMESPACE, column, None) >= 0
        return describe(connection, NAMESPACE, column, None, wants)


def test_topics_by_name(catalog: SqliteCatalog) -> None:
    names = [
        f"persistent://t/n/{each}" for each in ("plain", "parted", "sparse", "unknown", "parted-partition-1")
    ]
    details = read(catalog, *names, "non-persistent://t/n/plain", "persistent://t/other/plain")
    check_values(details, WANTS)
    rows = {row["topic"]: row for row in details.to_pylist()}
    persistent = [f"persistent://t/n/{each}" for each in ("parted", "plain", "sparse")]
    assert list(rows) == [*persistent, "non-persistent://t/n/plain"]
    for name, row in rows.items():
        record = present(catalog.topic(TopicName.parse(name)))
        assert row["topic_id"] == record.topic_id.bytes
        assert row["partitions"] == record.partitions
        assert row["properties"] == dict(record.properties)
        assert row["created"] == record.created.replace(tzinfo=None)


def test_topics_by_id(catalog: SqliteCatalog) -> None:
    record = present(catalog.topic(TopicName.parse("persistent://t/n/parted")))
    ids = pa.array([record.topic_id.bytes, b"0" * 16], DETAIL_TYPES["topic_id"])
    with catalog.reading() as connection:
        details = describe(connection, NAMESPACE, None, ids, frozenset({"partitions"}))
    assert details.to_pylist() == [{"topic": "persistent://t/n/parted", "partitions": 12}]


def test_only_what_is_wanted_and_nothing_of_what_is_not_there(catalog: SqliteCatalog) -> None:
    assert read(catalog, "persistent://t/n/plain", wants=frozenset({"created"})).columns == ("created",)
    nothing = read(catalog, "persistent://t/n/unknown")
    assert len(nothing) == 0
    assert {name: nothing.column(name).type for name in nothing.columns} == {
        name: DETAIL_TYPES[name] for name in WANTS
    }


def test_what_stands_between_two_topics_is_not_told(catalog: SqliteCatalog) -> None:
    """Topics side by side are read as a range, with what else it has."""
    names = ["persistent://t/n/parted", "persistent://t/n/sparse"]
    assert read(catalog, *names).topics.to_pylist() == names


def test_topics_may_have_the_same_properties(catalog: SqliteCatalog) -> None:
    same = {"team": "shop", 'a"\n': "é\U0001f600"}
    catalog.create(TopicName.parse("persistent://t/n/parted2"), properties=same)
    details = read(catalog, "persistent://t/n/parted", "persistent://t/n/parted2", "persistent://t/n/plain")
    assert [dict(each) for each in details.column("properties").to_pylist()] == [same, same, {}]


def test_configs_are_those_that_were_set(catalog: SqliteCatalog) -> None:
    name = TopicName.parse("persistent://t/n/set")
    configs = {"retention.ms": "1", "cleanup.policy": "compact"}
    catalog.edit(name, creation(name, 1, configs=configs))
    details = read(catalog, str(name), "persistent://t/n/plain", wants=frozenset({"configs"}))
    check_values(details, {"configs"})
    rows = {row["topic"]: dict(row["configs"]) for row in details.to_pylist()}
    assert rows == {str(name): configs, "persistent://t/n/plain": {}}


@pytest.mark.parametrize("few", [0, 10])
def test_many_ids_are_found_as_few_are(
    catalog: SqliteCatalog, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_details, "_FEW_IDS", few)
    with catalog.topics(NAMESPACE) as (_, records):
        ids = {record.topic_id.bytes: str(record.name) for record in records}
    column = pa.array([*ids, b"0" * 16], pa.binary(16))
    with catalog.reading() as connection:
        details = describe(connection, NAMESPACE, None, column, frozenset({"topic_id"}))
    assert {row["topic_id"]: row["topic"] for row in details.to_pylist()} == ids


def test_a_few_ids_are_looked_up_in_the_index(catalog: SqliteCatalog) -> None:
    asked: list[str] = []
    with catalog.reading() as connection:
        connection.set_trace_callback(asked.append)
        describe(connection, NAMESPACE, None, pa.array([b"0" * 16], pa.binary(16)), frozenset({"topic_id"}))
        connection.set_trace_callback(None)
        plans = [str(connection.execute(f"EXPLAIN QUERY PLAN {each}").fetchall()) for each in asked]
    assert len(plans) == 2
    assert all("topics_by_id" in plan for plan in plans)
