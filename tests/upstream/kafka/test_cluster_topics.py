"""Topics of a cluster as columns: what is listed, what is left out, and what two answers share."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa

from broker_core.names import NamespaceName
from broker_core.upstream.kafka.cluster_topics import ClusterTopics
from broker_core.wire.kafka import ZERO_ID
from broker_core.wire.kafka.topic_fragments import PlacedTopics

NAMESPACE = NamespaceName.parse("acme/kafka")


def topics(
    partitions: dict[str, int], old: ClusterTopics | None = None, epoch: bytes = b"0"
) -> ClusterTopics:
    names = [name.encode() for name in partitions]
    read = PlacedTopics(
        pa.array(names, pa.large_binary()),
        pa.array([name.ljust(16, b"-")[:16] for name in names], pa.large_binary()),
        np.array(list(partitions.values()), np.int32),
        pa.array([name + epoch for name in names], pa.large_binary()),
    )
    return ClusterTopics.of(NAMESPACE, read, b"digest", old)


def test_each_partition_is_listed() -> None:
    found = topics({"b": 2, "a": 1})
    assert found.names().to_pylist() == [
        f"persistent://acme/kafka/{name}" for name in ("a-partition-0", "b-partition-0", "b-partition-1")
    ]
    assert (found.partitions_of("b"), found.partitions_of("c"), found.partitions_of("ab")) == (2, 0, 0)


def test_names_and_ids_are_found_by_each_other() -> None:
    found = topics({"a": 1, "b": 2})
    ids = {name: uuid.UUID(bytes=name.encode().ljust(16, b"-")) for name in ("a", "b", "c")}
    assert [found.id_of(name) for name in ("a", "b", "c")] == [ids["a"], ids["b"], ZERO_ID]
    assert found.names_of(ids.values()) == {ids["a"]: "a", ids["b"]: "b"}


def test_names_that_would_be_other_topics_are_left_out() -> None:
    found = topics(
        {"a": 1, "a-partition-1": 1, "__change_events": 1, "__consumer_offsets": 1, "b c": 1, "": 1}
    )
    assert [name.rpartition("/")[2] for name in found.names().to_pylist()] == [
        "__consumer_offsets-partition-0",
        "a-partition-0",
    ]
    assert found.table.left_out == 4
    assert found.left_out.to_pylist() == [b"", b"__change_events", b"a-partition-1", b"b c"]
    assert found.left_out_text() == "4 topics: , __change_events, a-partition-1, b c"
    assert topics({f"a-partition-{number}": 1 for number in range(7)}).left_out_text().endswith("-4, ...")
    assert topics({"a": 1}).left_out_text() == ""


def test_the_hash_is_that_of_what_is_listed() -> None:
    one = topics({"a": 1, "b": 2})
    assert one.hash == topics({"b": 2, "a": 1}, epoch=b"1").hash
    assert one.hash != topics({"a": 1, "b": 3}).hash
    assert one.hash != topics({"a": 1, "c": 2}).hash


def test_details_of_some_topics() -> None:
    found = topics({"a": 1, "b": 2, "c": 3})
    wants = frozenset({"partitions", "topic_id"})
    names = pa.array(["persistent://acme/kafka/c", "persistent://acme/kafka/x"], pa.large_string())
    by_name = found.details(wants, names).to_pylist()
    assert by_name == [
        {"topic": "persistent://acme/kafka/c", "partitions": 3, "topic_id": b"c".ljust(16, b"-")}
    ]
    ids = pa.array([b"b".ljust(16, b"-"), bytes(16)], pa.binary(16))
    assert [row["topic"][-1] for row in found.details(wants, ids=ids).to_pylist()] == ["b"]
    assert len(found.details(frozenset({"partitions"}))) == 3


def test_chunks_without_a_change_are_shared() -> None:
    many = {f"topic-{number:05d}": 1 for number in range(10_000)}
    old = topics(many)
    new = topics({**many, "topic-00001": 2, "zz": 1} | {}, old)
    assert len(old.table.chunks) == 3
    assert [chunk in old.table.chunks for chunk in new.table.chunks] == [False, True, False]
    fresh = topics({**many, "topic-00001": 2, "zz": 1})
    assert new.names().equals(fresh.names())
    assert new.hash == fresh.hash
    assert topics(many, new).table.size == 10_000
    assert topics(many, old).table.chunks == old.table.chunks


def test_a_moved_leader_is_another_table_with_the_same_names() -> None:
    many = {f"topic-{number:05d}": 1 for number in range(100)}
    old = topics(many)
    new = topics(many, old, epoch=b"1")
    assert new.hash == old.hash
    assert new.table.chunks[0].row(0).placement == b"topic-000001"
