from __future__ import annotations

import io
import multiprocessing
import threading
import uuid
from pathlib import Path

import pytest

from broker_core.catalog.bulk_changes import (
    PropertiesChange,
    delete_matching,
    set_properties_of_matching,
)
from broker_core.catalog.catalog_errors import (
    CatalogBusy,
    PartitionRefused,
    PreconditionFailed,
    TopicMissing,
)
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.store.topic_rows import Edit
from broker_core.catalog.topic_decisions import (
    TopicWrite,
    adjustment,
    creation,
    deletion,
    replacement,
)
from broker_core.catalog.topic_files.import_file import import_topics
from broker_core.catalog.topic_record import Catalog, TopicRecord
from broker_core.change_log import CatalogVersion, Changes, Operation
from broker_core.guards import Deletions
from broker_core.names import NamespaceName, TopicName
from tests.catalog.filled import bring
from tests.support.narrowed import of_type, present

NAMESPACE = NamespaceName("public", "default")


def topic(local: str, domain: str = "persistent") -> TopicName:
    return TopicName(domain, NAMESPACE, local)


def names_of(catalog: SqliteCatalog, local: str) -> list[str]:
    record = catalog.topic(topic(local))
    return [] if record is None else [name.rpartition("/")[2] for name in record.names]


def operations(catalog: SqliteCatalog) -> list[Operation]:
    changes = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 0)), Changes)
    return [change.operation for change in changes]


def test_a_new_catalogue_has_nothing_at_version_0(catalog: SqliteCatalog) -> None:
    assert catalog.namespaces() == []
    assert catalog.version(NAMESPACE) == CatalogVersion(catalog.catalog_id, 0)
    assert catalog.topic(topic("orders")) is None
    assert catalog.partitions(topic("orders")) is None
    assert not catalog.changes(NAMESPACE, catalog.version(NAMESPACE))


def test_a_topic_is_there_after_it_was_created(catalog: SqliteCatalog) -> None:
    made = catalog.create(topic("orders"), properties={"region": "eu"})

    assert catalog.topic(topic("orders")) == made
    assert made.properties == {"region": "eu"}
    assert list(made.names) == ["persistent://public/default/orders"]
    assert catalog.partitions(topic("orders")) == 0
    assert catalog.topic(topic("orders", "non-persistent")) is None, "the other domain is another topic"
    assert catalog.version(NAMESPACE).number == 1
    assert catalog.namespaces() == [NAMESPACE]


def test_a_partitioned_topic_is_listed_by_its_partitions_only(catalog: SqliteCatalog) -> None:
    made = catalog.create(topic("a"), partitions=3)

    assert names_of(catalog, "a") == ["a-partition-0", "a-partition-1", "a-partition-2"]
    assert catalog.partitions(topic("a")) == 3
    assert catalog.partitions(topic("a-partition-1")) == 0
    assert catalog.partitions(topic("a-partition-3")) is None
    by_partition = present(catalog.topic(topic("a-partition-2")))
    assert by_partition.topic_id == made.topic_id


def test_a_partition_of_a_partition_is_one_of_the_topic_in_between(catalog: SqliteCatalog) -> None:
    bring(catalog, "a-partition-1-partition-2", namespace=NAMESPACE)
    assert catalog.partitions(topic("a-partition-1")) == 3
    assert catalog.partitions(topic("a")) is None
    found = present(catalog.topic(topic("a-partition-1")))
    assert found.name == topic("a-partition-1")

    bring(catalog, "a-partition-1", namespace=NAMESPACE)
    record = present(catalog.topic(topic("a-partition-1")))
    assert record.name == topic("a"), "the name that is listed comes before a topic's own"
    assert catalog.partitions(topic("a")) == 2


def test_a_partition_comes_back_and_joins_its_topic(catalog: SqliteCatalog) -> None:
    made = catalog.create(topic("a"), partitions=3, properties={"k": "v"})
    catalog.delete(topic("a-partition-1"))
    joined = catalog.create(topic("a-partition-1"))

    assert (joined.topic_id, joined.properties) == (made.topic_id, {"k": "v"})
    assert operations(catalog) == [Operation.CREATE, Operation.UPDATE, Operation.UPDATE]
    for further in ("a-partition-3", "b-partition-0"):
        with pytest.raises(PartitionRefused):
            catalog.create(topic(further))


def test_deleting_and_creating_changes_the_id(catalog: SqliteCatalog) -> None:
    old = catalog.create(topic("a"), partitions=2)
    assert catalog.delete(topic("a")) == old
    assert catalog.topic(topic("a")) is None
    new = catalog.create(topic("a"))

    assert new.topic_id != old.topic_id
    changes = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 1)), Changes)
    tombstone, made = changes
    assert (tombstone.operation, tombstone.topic_id) == (Operation.DELETE, old.topic_id)
    assert list(tombstone.removed) == list(old.names)
    assert (made.operation, made.topic_id) == (Operation.CREATE, new.topic_id)


def test_several_are_deleted_at_once_or_none_is(catalog: SqliteCatalog) -> None:
    bring(catalog, "a", "b", "c-partition-0", "c-partition-1", namespace=NAMESPACE)
    other = TopicName.parse("persistent://other/place/x")
    catalog.create(other)
    version = catalog.version(NAMESPACE)
    with pytest.raises(TopicMissing, match=r"no topic .*/absent"):
        catalog.delete_all([topic("a"), other, topic("absent")])
    with pytest.raises(TopicMissing):
        catalog.delete_all([topic("a"), topic("a")])
    assert catalog.topic(topic("a")) is not None
    assert catalog.topic(other) is not None
    assert catalog.version(NAMESPACE) == version

    removed = catalog.delete_all([topic("a"), other, topic("c-partition-1")])
    assert [str(record.name) for record in removed] == [str(topic("a")), str(other), str(topic("c"))]
    changes = of_type(catalog.changes(NAMESPACE, version), Changes)
    assert [(change.version - version.number, change.operation) for change in changes] == [
        (1, Operation.DELETE),
        (1, Operation.UPDATE),
    ]
    assert catalog.version(other.namespace).number == 2
    assert catalog.delete_all([]) == []


def test_a_partition_is_deleted_alone_and_the_last_one_with_its_topic(catalog: SqliteCatalog) -> None:
    catalog.create(topic("a"), partitions=2)
    catalog.delete(topic("a-partition-1"))
    assert names_of(catalog, "a") == ["a-partition-0"]
    catalog.delete(topic("a-partition-0"))
    assert catalog.topic(topic("a")) is None
    assert operations(catalog) == [Operation.CREATE, Operation.UPDATE, Operation.DELETE]
    assert catalog.namespaces() == []
    assert catalog.version(NAMESPACE).number == 3, "versions go on where all topics went"


def test_properties_are_replaced(catalog: SqliteCatalog) -> None:
    made = catalog.create(topic("a"), partitions=2, properties={"x": "1", "y": "2"})
    changed = catalog.set_properties(topic("a-partition-1"), {"x": "3"})

    assert changed.properties == {"x": "3"}
    assert changed.topic_id == made.topic_id
    assert catalog.topic(topic("a")) == changed
    assert catalog.set_properties(topic("a"), {"x": "3"}) == changed
    assert catalog.version(NAMESPACE).number == 2, "the same properties are no change"


def test_what_is_not_there_is_an_error_and_no_change(catalog: SqliteCatalog) -> None:
    catalog.create(topic("a"), partitions=2)
    for act in (catalog.delete, lambda name: catalog.set_properties(name, {})):
        for name in ("b", "a-partition-2"):
            with pytest.raises(TopicMissing, match=f"no topic persistent://public/default/{name} "):
                act(topic(name))
    assert catalog.version(NAMESPACE).number == 1
    with pytest.raises(TopicMissing):
        catalog.delete(TopicName.parse("persistent://no/where/a"))
    assert catalog.version(NamespaceName("no", "where")).number == 0


def test_a_second_process_sees_and_makes_changes(catalog: SqliteCatalog) -> None:
    catalog.create(topic("a"))
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_other_process, args=(catalog.path,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert catalog.topic(topic("a")) is None
    assert catalog.topic(topic("b")) is not None
    assert catalog.version(NAMESPACE).number == 3


def _other_process(path: Path) -> None:
    with SqliteCatalog(path) as same:
        same.delete(topic("a"))
        same.create(topic("b"))


def test_threads_write_one_after_the_other(catalog: SqliteCatalog) -> None:
    def fill(thread: int) -> None:
        for number in range(10):
            catalog.create(topic(f"t{thread}-{number}"))

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert catalog.version(NAMESPACE).number == 80
    changes = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 0)), Changes)
    assert [change.version for change in changes] == list(range(1, 81))


def test_all_topics_come_from_one_state(catalog: SqliteCatalog) -> None:
    made = [catalog.create(topic("b"), partitions=2), catalog.create(topic("a", "non-persistent"))]
    catalog.create(TopicName.parse("persistent://other/space/a"))
    with catalog.topics(NAMESPACE) as (version, topics):
        catalog.create(topic("c"))
        assert version.number == 2
        assert list(topics) == made
    protocol: Catalog = catalog
    with protocol.topics(NamespaceName("no", "where")) as (version, topics):
        assert (version.number, list(topics)) == (0, [])


def test_an_edit_sees_and_writes_one_state(catalog: SqliteCatalog) -> None:
    made = catalog.edit(topic("a"), creation(topic("a"), 2, {"k": "v"}))
    assert made.before is None
    assert made.after == catalog.topic(topic("a"))
    assert made.changed
    assert made.version == catalog.version(NAMESPACE)
    assert made.version.same_state(catalog.version(NAMESPACE))
    assert made.version.stamp == catalog.version(NAMESPACE).stamp

    again = catalog.edit(topic("a"), replacement(topic("a"), 2, {"k": "v"}, may_replace=False))
    assert not again.changed
    assert (again.version, again.version.stamp) == (made.version, made.version.stamp)

    gone = catalog.edit(topic("a-partition-0"), deletion(topic("a-partition-0")))
    assert names_of(catalog, "a") == ["a-partition-1"]
    assert gone.before == made.after
    back = catalog.edit(topic("a-partition-0"), creation(topic("a-partition-0")))
    assert names_of(catalog, "a") == ["a-partition-0", "a-partition-1"]
    assert back.version.number == 3


def test_an_edit_is_not_made_where_its_requirement_is_not_met(catalog: SqliteCatalog) -> None:
    catalog.create(topic("a"), partitions=2)
    seen: list[TopicRecord | None] = []

    def require(found: TopicRecord | None) -> None:
        seen.append(found)
        raise PreconditionFailed("it is another one")

    for local in ("a", "a-partition-1", "a-partition-7", "b"):
        with pytest.raises(PreconditionFailed):
            catalog.edit(topic(local), deletion(topic(local)), require=require)
    assert seen == [catalog.topic(topic("a"))] * 2 + [None] * 2
    assert catalog.version(NAMESPACE).number == 1


def test_an_edit_waits_for_other_writers_as_long_as_it_may(catalog: SqliteCatalog) -> None:
    with catalog.connect() as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CatalogBusy, match="another process"):
            catalog.edit_many(NAMESPACE, [Edit(topic("a"), creation(topic("a")))], wait=0.01)
        other.execute("ROLLBACK")
    other.close()
    with (
        catalog.changing(NAMESPACE),
        pytest.raises(CatalogBusy, match="being written"),
    ):
        catalog.edit_many(NAMESPACE, [Edit(topic("a"), creation(topic("a")))], wait=0.01)
    assert catalog.edit_many(NAMESPACE, [Edit(topic("a"), creation(topic("a")))], wait=0.01)
    with catalog.changing(NAMESPACE, dry_run=True) as (connection, _):
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (30_000,)


def test_a_topic_is_found_by_its_id_in_any_namespace(catalog: SqliteCatalog) -> None:
    made = [
        catalog.create(topic("a"), partitions=2),
        catalog.create(TopicName.parse("non-persistent://o/s/a")),
    ]
    for record in made:
        assert catalog.topic_by_id(record.topic_id) == record
    catalog.delete(topic("a"))
    assert catalog.topic_by_id(made[0].topic_id) is None
    assert catalog.topic_by_id(uuid.UUID(int=0)) is None


def test_the_id_of_a_deleted_topic_is_kept_for_the_delay(catalog: SqliteCatalog) -> None:
    first = catalog.create(topic("a"))
    assert not catalog.was_deleted(first.topic_id)
    catalog.delete(topic("a"))
    gone = present(catalog.deleted_topic(first.topic_id))
    assert (gone.name, gone.topic_id) == (topic("a"), first.topic_id)
    assert catalog.was_deleted(first.topic_id)
    again = catalog.create(topic("a"))
    assert again.topic_id != first.topic_id
    assert catalog.was_deleted(first.topic_id), "a topic of the same name is another one"
    catalog.deletion_delay = -1
    assert not catalog.was_deleted(first.topic_id)


def test_bulk_deletions_keep_ids_too(catalog: SqliteCatalog) -> None:
    made = [catalog.create(topic(name)) for name in ("a", "b", "c")]
    delete_matching(catalog, NAMESPACE, ".*/a", Deletions(mass=True))
    import_topics(catalog, NAMESPACE, io.BytesIO(b"c\n"), exact=Deletions(mass=True))
    catalog.delete_all([topic("c")])
    assert [catalog.was_deleted(record.topic_id) for record in made] == [True] * 3


def test_configs_and_replication_are_kept_and_logged(catalog: SqliteCatalog) -> None:
    configs = {"retention.ms": "1", "cleanup.policy": "compact"}
    catalog.edit(topic("a"), creation(topic("a"), 1, configs=configs, replication=3))
    made = present(catalog.topic(topic("a")))
    assert (made.configs, made.replication) == (configs, 3)
    catalog.edit(topic("a"), adjustment(topic("a"), configs=lambda now: {**now, "retention.ms": "2"}))
    catalog.set_properties(topic("a"), {"region": "eu"})
    set_properties_of_matching(catalog, NAMESPACE, ".*/a-partition.*", PropertiesChange({"region": "us"}))
    import_topics(catalog, NAMESPACE, io.BytesIO(b'{"name": "a", "partitions": 2, "properties": {}}\n'))
    now = {"retention.ms": "2", "cleanup.policy": "compact"}
    with catalog.topics(NAMESPACE) as (_, topics):
        assert [(each.configs, each.replication, each.partitions) for each in topics] == [(now, 3, 2)]
    catalog.delete(topic("a"))
    changes = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 0)), Changes)
    assert [(each.configs_before, each.configs_after) for each in changes] == [
        ({}, configs),
        (configs, now),
        (now, now),
        (now, now),
        (now, {}),
    ]


def test_a_name_that_is_deleted_and_created_in_one_version_is_two_topics_in_the_log(
    catalog: SqliteCatalog,
) -> None:
    before = catalog.create(topic("a"), properties={"region": "eu"})
    done = catalog.edit_many(
        NAMESPACE,
        [Edit(topic("a"), deletion(topic("a"))), Edit(topic("a"), creation(topic("a"), 0, {"region": "eu"}))],
    )
    after = present(catalog.topic(topic("a")))
    assert after.topic_id != before.topic_id
    assert of_type(done[1], TopicWrite).after == after
    changes = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 1)), Changes)
    assert [(each.version, each.operation, each.topic_id) for each in changes] == [
        (2, Operation.DELETE, before.topic_id),
        (2, Operation.CREATE, after.topic_id),
    ]


def test_many_topics_are_read_together_in_their_order(catalog: SqliteCatalog) -> None:
    a, b = catalog.create(topic("a"), partitions=2), catalog.create(topic("b", "non-persistent"))
    names = [topic("b", "non-persistent"), topic("b"), topic("a"), topic("a-partition-0"), topic("a")]
    found = [(b, 0), (None, 0), (a, 2), (a, 0), (a, 2)]
    assert catalog.found(names) == found
    assert catalog.found(names * 2) == found * 2, "as many as are read together"
    assert catalog.topics_by_id([b.topic_id, uuid.uuid4(), a.topic_id]) == [b, None, a]
