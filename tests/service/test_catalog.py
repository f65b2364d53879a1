from __future__ import annotations

from contextlib import closing
from pathlib import Path

from broker_core.catalog import AclRow, AsyncCatalog, Edit, SqliteCatalog, TopicWrite, creation
from broker_core.names import TopicName
from broker_core.service import TopicCatalog

X = TopicName.parse("persistent://acme/shop/x.y")
P = TopicName.parse(f"{X}-partition-1")


async def test_a_file_is_read_and_changed_by_this_protocol(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "topics.sqlite") as file:
        made = AsyncCatalog(file)
        catalog: TopicCatalog = made
        try:
            (write,) = await catalog.edit(X.namespace, [Edit(X, creation(X, 2))])
            assert isinstance(write, TopicWrite)
            there = write.after
            assert there is not None
            assert (catalog.catalog_id, await catalog.version(X.namespace)) == (
                file.catalog_id,
                write.version,
            )
            assert await catalog.topic(X) == await catalog.topic(P) == there
            assert await catalog.found([P, X]) == [(there, 0), (there, 2)]
            assert catalog.found_now([X]) is None
            assert catalog.topics_by_id_now([there.topic_id]) is None
            assert await catalog.topics_by_id([there.topic_id]) == [there]
            assert await catalog.taken_names(X.namespace, ["x_y", "z"]) == {"x_y": "x.y"}
            assert await catalog.namespaces() == [X.namespace]
            assert catalog.counts.count([X.namespace])[0].names == (2, 0)
            row = AclRow(2, "x", 3, "User:a", "*", 3, 3)
            assert await catalog.change_kafka_acls(X.namespace, [row]) == 1
            assert file.kafka_acls(X.namespace) == (1, (row,))
            with closing(catalog.acl_reader()) as reader:
                version, rows = await reader.read(X.namespace)
                assert (version.catalog_id, version.number, rows) == (file.catalog_id, 1, (row,))
                assert reader.version_now(X.namespace) == version
            assert catalog.kafka_user("nobody", "SCRAM-SHA-256") is None
        finally:
            made.close()
