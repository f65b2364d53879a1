from __future__ import annotations

from dataclasses import replace

from broker_core.catalog.catalog_errors import NameCollides, TopicExists, TopicMissing
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.store.topic_rows import Edit, edit_each
from broker_core.catalog.topic_decisions import creation, deletion
from broker_core.catalog.topic_record import TopicRecord
from broker_core.names import NamespaceName, TopicName
from tests.support.narrowed import of_type

NAMESPACE = NamespaceName("public", "default")


def topic(local: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, local)


def test_each_edit_sees_what_those_before_it_left(catalog: SqliteCatalog) -> None:
    seen: list[list[str]] = []

    def look(found: TopicRecord | None) -> TopicRecord | None:
        seen.append([] if found is None else [name.rpartition("/")[2] for name in found.names])
        return found

    with catalog.changing(NAMESPACE) as (connection, change):
        done = edit_each(
            connection,
            change,
            [
                Edit(topic("a"), look),
                Edit(topic("a"), creation(topic("a"), 2)),
                Edit(topic("a-partition-0"), look),
                Edit(topic("a-partition-0"), deletion(topic("a-partition-0"))),
                Edit(topic("a-partition-0"), look),
                Edit(topic("a"), deletion(topic("a"))),
                Edit(topic("a"), look),
                Edit(topic("a"), deletion(topic("a"))),
            ],
        )
    assert seen == [[], ["a-partition-0", "a-partition-1"], ["a-partition-1"], []]
    assert isinstance(done[-1], TopicMissing)


def test_an_edit_that_makes_another_topic_of_the_name_deletes_and_creates(catalog: SqliteCatalog) -> None:
    made = catalog.create(topic("a"), properties={"region": "eu"})
    fresh = catalog.create(topic("other")).topic_id
    catalog.delete(topic("other"))
    write = catalog.edit(topic("a"), lambda _: replace(made, topic_id=fresh))
    assert (write.before, write.after) == (made, catalog.topic(topic("a")))
    assert catalog.topic_by_id(made.topic_id) is None
    assert catalog.was_deleted(made.topic_id)
    assert catalog.topic_by_id(fresh) is not None


def test_a_distinct_name_collides_with_topics_of_earlier_transactions_alone(catalog: SqliteCatalog) -> None:
    catalog.create(topic("a.b"), partitions=1)
    names = ("a_b", "a.b", "c_d", "c.d", "plain")
    with catalog.changing(NAMESPACE) as (connection, change):
        edits = [Edit(topic(name), creation(topic(name), 1), distinct=True) for name in names]
        done = edit_each(connection, change, [*edits, Edit(topic("a_b"), creation(topic("a_b"), 1))])
    collides, there, *made = done
    assert of_type(collides, NameCollides).other == "a.b"
    assert isinstance(there, TopicExists)
    assert [each[1].name for each in made if isinstance(each, tuple) and each[1] is not None] == [
        topic(name) for name in ("c_d", "c.d", "plain", "a_b")
    ]
