from __future__ import annotations

import uuid

from broker_core.catalog.store.deleted_topics import deleted_topic, forget_deleted, keep_deleted
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.names import TopicName

NAME = TopicName.parse("persistent://public/default/a")


def test_it_is_known_from_its_deletion_on_until_it_is_forgotten(catalog: SqliteCatalog) -> None:
    catalog.create(NAME)  # for the namespace
    topic_id = uuid.uuid4()
    connection = catalog.connect()
    keep_deleted(connection, 1, 0, "a", topic_id.bytes, 1_000)
    assert deleted_topic(connection, topic_id, 1_000) == (NAME, topic_id, 1_000)
    assert deleted_topic(connection, topic_id, 1_001) is None
    assert deleted_topic(connection, uuid.uuid4(), 0) is None
    forget_deleted(connection, 1_000)
    assert deleted_topic(connection, topic_id, 0) is not None
    forget_deleted(connection, 1_001)
    assert deleted_topic(connection, topic_id, 0) is None
    connection.close()


def test_the_oldest_go_first_and_more_than_come(catalog: SqliteCatalog) -> None:
    connection = catalog.connect()
    for time in range(3_000):
        keep_deleted(connection, 1, 0, str(time), uuid.uuid4().bytes, time)
    forget_deleted(connection, 10_000, added=200)
    oldest, left = connection.execute("SELECT min(deleted), count(*) FROM deleted_topics").fetchone()
    assert (oldest, left) == (1_200, 1_800)
    connection.close()
