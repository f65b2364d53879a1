from __future__ import annotations

import uuid

from broker_core.access.asker import Access, Refused
from broker_core.catalog import SqliteCatalog
from broker_core.wire.kafka import DELETE_TOPICS, ZERO_ID, Fields
from tests.support.kafka_serving import ask_once, kafka_broker
from tests.support.kafka_topics import NAMESPACE, create
from tests.support.plugins import PluginOf


def _request(*asked: str | uuid.UUID) -> Fields:
    rows = [{"name": each} if isinstance(each, str) else {"name": None, "topic_id": each} for each in asked]
    return {"topics": rows, "timeout_ms": 10_000}


async def test_topics_go_with_all_of_their_partitions_by_name_and_by_id(catalog: SqliteCatalog) -> None:
    made = {name: create(catalog, name, count) for name, count in (("a", 3), ("b", 0), ("c", 1))}
    async with kafka_broker(catalog.path.parent) as broker:
        rows = (await ask_once(broker, DELETE_TOPICS, 6, _request("a", made["b"].topic_id)))["responses"]
    assert [(row["name"], row["topic_id"], row["error_code"]) for row in rows] == [
        (name, made[name].topic_id, 0) for name in ("a", "b")
    ]
    with catalog.topics(NAMESPACE) as (_, left):
        assert [record.name.local for record in left] == ["c"]
    assert catalog.was_deleted(made["a"].topic_id)


async def test_a_gate_that_refuses_keeps_a_topic(catalog: SqliteCatalog) -> None:
    made = {name: create(catalog, name, 1) for name in ("a", "b", "c")}

    def gate(access: Access) -> Refused | None:
        return Refused("not here") if access.action == "admin" and access.topic != made["c"].name else None

    async with kafka_broker(catalog.path.parent, plugins={"gate": PluginOf(authorize=gate)}) as broker:
        answer = await ask_once(broker, DELETE_TOPICS, 6, _request("a", made["b"].topic_id, "c"))
    assert [(row["name"], row["topic_id"], row["error_code"]) for row in answer["responses"]] == [
        ("a", ZERO_ID, 29),
        ("b", made["b"].topic_id, 29),
        ("c", made["c"].topic_id, 0),
    ]
    assert catalog.topic(made["a"].name) is not None


async def test_a_duplicate_id_is_not_deleted_by_its_name(catalog: SqliteCatalog) -> None:
    made = create(catalog, "a", 1)
    async with kafka_broker(catalog.path.parent) as broker:
        answer = await ask_once(broker, DELETE_TOPICS, 6, _request("a", made.topic_id, made.topic_id))
    assert [(row["name"], row["error_code"]) for row in answer["responses"]] == [(None, 42), ("a", 42)]
    assert catalog.topic(made.name) == made


async def test_a_topic_made_anew_meanwhile_is_not_deleted_by_the_former_id(catalog: SqliteCatalog) -> None:
    former = create(catalog, "a", 1)
    made = [former]

    def gate(access: Access) -> None:
        """Recreate the topic once it was found by its id, and before it is deleted."""
        if access.action == "admin" and made == [former]:
            catalog.delete(former.name)
            made.append(create(catalog, "a", 2))

    async with kafka_broker(catalog.path.parent, plugins={"gate": PluginOf(authorize=gate)}) as broker:
        answer = await ask_once(broker, DELETE_TOPICS, 6, _request(former.topic_id))
    assert [(row["name"], row["topic_id"], row["error_code"]) for row in answer["responses"]] == [
        (None, former.topic_id, 100)
    ]
    assert len(made) == 2
    assert catalog.topic(former.name) == made[1]
