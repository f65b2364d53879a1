from __future__ import annotations

import io
import uuid
from pathlib import Path

import pytest

from broker_core.catalog.bulk_changes import delete_matching
from broker_core.catalog.store.change_log_writer import DELETED_IDS, LogBounds, deleted_topic, forget_deleted
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_file import import_topics
from broker_core.guards import Deletions
from broker_core.names import NamespaceName, TopicName
from tests.support.narrowed import present

NAMESPACE = NamespaceName("public", "default")


def topic(local: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, local)


def kept(catalog: SqliteCatalog) -> int:
    with catalog.reading() as connection:
        return int(connection.execute("SELECT count(*) FROM deleted_topics").fetchone()[0])


def deleted_ids(catalog: SqliteCatalog) -> list[bytes]:
    with catalog.reading() as connection:
        return sorted(topic_id for (topic_id,) in connection.execute(DELETED_IDS, {"since": 0}))


def test_it_is_known_by_the_log_for_the_delay(catalog: SqliteCatalog) -> None:
    made = catalog.create(topic("a"))
    catalog.delete(topic("a"))
    assert kept(catalog) == 0, "the log has it"
    with catalog.reading() as connection:
        gone = present(deleted_topic(connection, made.topic_id, 0))
        assert (gone.name, gone.topic_id) == (topic("a"), made.topic_id)
        assert deleted_topic(connection, made.topic_id, gone.deleted) == gone
        assert deleted_topic(connection, made.topic_id, gone.deleted + 1) is None
        assert deleted_topic(connection, uuid.uuid4(), 0) is None


@pytest.mark.parametrize("bounds", [LogBounds(versions=3), LogBounds(rows=3), LogBounds(versions=0)])
def test_what_the_log_lets_go_of_is_kept_for_the_delay(tmp_path: Path, bounds: LogBounds) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=bounds) as catalog:
        made = [catalog.create(topic(str(number))) for number in range(5)]
        for number in range(5):
            catalog.delete(topic(str(number)))
        for _ in range(5):
            catalog.create(topic("x"))
            catalog.delete(topic("x"))
        assert all(catalog.was_deleted(record.topic_id) for record in made)
        assert len(set(deleted_ids(catalog))) == len(deleted_ids(catalog)) == 10, "each is known once"
        catalog.deletion_delay = -1
        for _ in range(5):
            catalog.create(topic("x"))
            catalog.delete(topic("x"))
        assert not any(catalog.was_deleted(record.topic_id) for record in made)


@pytest.mark.parametrize("way", ["delete", "import"])
def test_a_deletion_that_the_log_does_not_hold_keeps_the_ids(tmp_path: Path, way: str) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=LogBounds(rows=3)) as catalog:
        made = [catalog.create(topic(f"a{number}")) for number in range(5)]
        earlier = catalog.create(topic("b"))
        catalog.delete(topic("b"))
        if way == "delete":
            delete_matching(catalog, NAMESPACE, ".*/a.*", Deletions(mass=True))
        else:
            import_topics(catalog, NAMESPACE, io.BytesIO(b"c\n"), exact=Deletions(mass=True))
        assert deleted_ids(catalog) == sorted(each.topic_id.bytes for each in [*made, earlier])


def test_an_exact_import_whose_deletions_alone_would_fit_keeps_the_ids_too(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=LogBounds(rows=3)) as catalog:
        made = catalog.create(topic("a"))
        import_topics(catalog, NAMESPACE, io.BytesIO(b"b\nc\nd\ne\n"), exact=Deletions(mass=True))
        assert deleted_ids(catalog) == [made.topic_id.bytes]


def test_the_oldest_go_first_and_more_than_come(catalog: SqliteCatalog) -> None:
    connection = catalog.connect()
    rows = [(number, uuid.uuid4().bytes) for number in range(3_000)]
    connection.executemany("INSERT INTO deleted_topics VALUES (NULL, ?2, 1, 0, 'a', ?1)", rows)
    forget_deleted(connection, 10_000, 200)
    oldest, left = connection.execute("SELECT min(deleted), count(*) FROM deleted_topics").fetchone()
    assert (oldest, left) == (1_200, 1_800)
    forget_deleted(connection, 1_201, 200)
    assert connection.execute("SELECT min(deleted) FROM deleted_topics").fetchone() == (1_201,)
    connection.close()
