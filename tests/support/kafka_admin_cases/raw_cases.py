"""Requests as they go over the wire, one for each case, at a version of our choice."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import kafka.protocol.admin as kp_admin
import kafka.protocol.metadata as kp_metadata

from tests.support.kafka_admin_cases.raw_client import RawClient

__all__ = ["Cases", "raw_cases"]

NO_SUCH_ID = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")
CONFIGS = {"retention.ms": "3600000", "cleanup.policy": "compact"}
LONG = "x" * 250
Cases = Iterator[tuple[str, Callable[[], object]]]


def raw_cases(address: tuple[str, int]) -> Cases:
    send = RawClient(address)
    m, a = kp_metadata, kp_admin

    def metadata(version: int = 13, **kw: object) -> object:
        topics = kw.pop("topics", None)
        if isinstance(topics, list):
            topics = [t if isinstance(t, dict) else {"name": t} for t in topics]
        return send(m.MetadataRequest, version, topics=topics, **({"allow_auto_topic_creation": False} | kw))

    def create(*topics: dict[str, object], version: int = 7, validate_only: bool = False) -> object:
        rows = [{"num_partitions": 1, "replication_factor": 1} | t for t in topics]
        return send(
            a.CreateTopicsRequest, version, topics=rows, timeout_ms=10000, validate_only=validate_only
        )

    def delete(*topics: dict[str, object], version: int = 6) -> object:
        key = {"topics": list(topics)} if version >= 6 else {"topic_names": [t["name"] for t in topics]}
        return send(a.DeleteTopicsRequest, version, timeout_ms=10000, **key)

    def pages(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> object:
        return send(
            a.DescribeTopicPartitionsRequest,
            0,
            topics=[{"name": n} for n in names],
            response_partition_limit=limit,
            cursor=cursor and {"topic_name": cursor[0], "partition_index": cursor[1]},
        )

    def configs(*resources: tuple[int, str, list[str] | None], version: int = 4, **kw: object) -> object:
        rows = [{"resource_type": t, "resource_name": n, "configuration_keys": k} for t, n, k in resources]
        return send(a.DescribeConfigsRequest, version, resources=rows, **kw)

    def alter(name: str, *ops: tuple[str, int, str | None], version: int = 1, **kw: object) -> object:
        rows = [{"name": n, "config_operation": o, "value": v} for n, o, v in ops]
        resources = [{"resource_type": 2, "resource_name": name, "configs": rows}]
        return send(
            a.IncrementalAlterConfigsRequest, version, resources=resources, **({"validate_only": False} | kw)
        )

    def partitions(name: str, count: int, version: int = 3, **kw: object) -> object:
        topics = [{"name": name, "count": count, "assignments": kw.pop("assignments", None)}]
        return send(
            a.CreatePartitionsRequest,
            version,
            topics=topics,
            timeout_ms=10000,
            **({"validate_only": False} | kw),
        )

    def ids() -> dict[str, uuid.UUID]:
        return {t["name"]: t["topic_id"] for t in metadata()["topics"]}  # type: ignore[index]

    def versions(version: int, **kw: object) -> object:
        return send(
            m.ApiVersionsRequest, version, client_software_name="raw", client_software_version="1", **kw
        )

    def after(change: Callable[[], object], then: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            change()
            return then()

        return run

    def unknown_api_key() -> object:
        answer = send.exchange(struct.pack(">hhih3s", 999, 0, 1, 3, b"raw"))
        return "connection closed" if answer is None else answer.hex()

    def api_versions_too_new() -> object:
        answer = send.exchange(struct.pack(">hhih3sB", 18, 99, 77, 3, b"raw", 0))
        return (
            "connection closed"
            if answer is None
            else m.ApiVersionsResponse.decode(answer, version=0, header=True).to_dict()
        )

    def api_versions_bad_name() -> (
        object
    ):  # kafka-python's codec fails to decode an ApiVersions v3 with an error
        request = m.ApiVersionsRequest(client_software_name="bad name!", client_software_version="1")
        request.with_header(correlation_id=1, client_id="raw")
        answer = send.exchange(bytes(request.encode(version=3, header=True)))
        return "connection closed" if answer is None else answer.hex()

    def trailing_bytes() -> object:
        request = m.MetadataRequest(topics=[], allow_auto_topic_creation=False)
        request.with_header(correlation_id=1, client_id="raw")
        answer = send.exchange(bytes(request.encode(version=13, header=True)) + b"\x00\x01\x02")
        return "connection closed" if answer is None else "answered"

    def unknown_tag() -> object:
        request = m.MetadataRequest(topics=[], allow_auto_topic_creation=False)
        request.with_header(correlation_id=1, client_id="raw")
        body = bytes(request.encode(version=13, header=True))
        assert body[-1] == 0  # no tagged fields; now: one, tag 77, 2 bytes
        answer = send.exchange(body[:-1] + b"\x01\x4d\x02hi")
        return "connection closed" if answer is None else "answered"

    def short_body() -> object:
        request = m.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        request.with_header(correlation_id=1, client_id="raw")
        answer = send.exchange(bytes(request.encode(version=13, header=True))[:-3])
        return "connection closed" if answer is None else "answered"

    def page_through(limit: int, *names: str) -> object:
        seen, cursor = [], None
        while True:
            page: Any = pages(*names, limit=limit, cursor=cursor)
            rows = [(t["name"], [p["partition_index"] for p in t["partitions"]]) for t in page["topics"]]
            cursor = page["next_cursor"] and (
                page["next_cursor"]["topic_name"],
                page["next_cursor"]["partition_index"],
            )
            seen.append({"topics": rows, "next": cursor})
            if cursor is None:
                return seen

    # Every version that a 4.x broker has, for the same question.
    for v in range(5):
        yield f"v/api_versions_v{v}", partial(versions, v)
    yield (
        "create_with_configs",
        lambda: create(
            {
                "name": "raw-orders",
                "num_partitions": 3,
                "configs": [{"name": k, "value": x} for k, x in CONFIGS.items()],
            }
        ),
    )
    yield (
        "create_defaults",
        lambda: create({"name": "raw-plain", "num_partitions": -1, "replication_factor": -1}),
    )
    for v in range(2, 8):
        yield (
            f"v/create_topics_validate_only_v{v}",
            partial(create, {"name": "raw-dry", "num_partitions": 2}, version=v, validate_only=True),
        )
        yield f"v/create_topics_exists_v{v}", partial(create, {"name": "raw-orders"}, version=v)
    for v in range(14):
        yield f"v/metadata_by_name_v{v}", partial(metadata, v, topics=["raw-orders"])
        yield f"v/metadata_unknown_name_v{v}", partial(metadata, v, topics=["raw-none"])
    for v in range(1, 7):
        yield f"v/delete_unknown_v{v}", partial(delete, {"name": "raw-none"}, version=v)
    for v in range(1, 5):
        yield f"v/describe_configs_v{v}", partial(configs, (2, "raw-orders", ["retention.ms"]), version=v)
    for v in range(4):
        yield (
            f"v/create_partitions_validate_only_v{v}",
            partial(partitions, "raw-plain", 2, v, validate_only=True),
        )
    for v in range(2):
        yield (
            f"v/incremental_alter_validate_only_v{v}",
            partial(alter, "raw-plain", ("retention.ms", 0, "1000"), version=v, validate_only=True),
        )
    for v in range(3):
        yield f"v/describe_cluster_v{v}", partial(send, a.DescribeClusterRequest, v)

    yield "list_all", lambda: metadata(13, topics=None)
    yield "list_none", lambda: metadata(13, topics=[])
    yield "list_v0_empty_is_all", lambda: metadata(0, topics=[])
    yield (
        "list_with_authorized_operations",
        lambda: metadata(12, topics=["raw-plain"], include_topic_authorized_operations=True),
    )
    yield (
        "list_v8_cluster_operations",
        lambda: metadata(
            8,
            topics=["raw-plain"],
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        ),
    )
    yield (
        "metadata_unknown_auto_create_true",
        lambda: metadata(13, topics=["raw-auto"], allow_auto_topic_creation=True),
    )
    yield "metadata_unknown_auto_create_stays_away", lambda: "raw-auto" in ids()
    yield "metadata_invalid_name", lambda: metadata(13, topics=["raw bad/name"])
    yield "metadata_empty_name", lambda: metadata(13, topics=[""])
    yield "metadata_name_250", lambda: metadata(13, topics=[LONG])
    yield "metadata_same_name_twice", lambda: metadata(13, topics=["raw-plain", "raw-plain"])
    yield "metadata_several_order", lambda: metadata(13, topics=["raw-plain", "raw-none", "raw-orders"])
    yield "metadata_by_id", lambda: metadata(13, topics=[{"topic_id": ids()["raw-plain"], "name": None}])
    yield "metadata_by_id_v12", lambda: metadata(12, topics=[{"topic_id": ids()["raw-plain"], "name": None}])
    yield "metadata_by_id_v10", lambda: metadata(10, topics=[{"topic_id": ids()["raw-plain"], "name": ""}])
    yield "metadata_unknown_id", lambda: metadata(13, topics=[{"topic_id": NO_SUCH_ID, "name": None}])
    yield "metadata_zero_id_null_name", lambda: metadata(13, topics=[{"topic_id": None, "name": None}])
    yield (
        "metadata_id_and_name_mixed",
        lambda: metadata(13, topics=[{"topic_id": ids()["raw-plain"], "name": None}, {"name": "raw-orders"}]),
    )
    yield (
        "metadata_id_and_name_in_one_row",
        lambda: metadata(13, topics=[{"topic_id": ids()["raw-plain"], "name": "raw-orders"}]),
    )

    yield "create_validate_only_leaves_nothing", lambda: "raw-dry" in ids()
    yield "create_validate_only_duplicate", lambda: create({"name": "raw-orders"}, validate_only=True)
    yield "create_duplicate", lambda: create({"name": "raw-orders"})
    yield (
        "create_duplicate_in_request",
        lambda: create({"name": "raw-twice"}, {"name": "raw-twice"}, {"name": "raw-one"}),
    )
    yield "create_duplicate_in_request_made_the_other", lambda: sorted({"raw-twice", "raw-one"} & set(ids()))
    for label, name in (
        ("invalid_char", "raw bad/name"),
        ("empty_name", ""),
        ("dot", "."),
        ("dots", ".."),
        ("250", LONG),
    ):
        yield f"create_{label}", partial(create, {"name": name})
    yield "create_name_249", lambda: create({"name": LONG[:249]}, validate_only=True)
    yield "create_null_name", lambda: create({"name": None})
    yield "create_collision", after(lambda: create({"name": "raw-c.x"}), lambda: create({"name": "raw-c_x"}))
    yield "create_collision_in_request", lambda: create({"name": "raw-d.x"}, {"name": "raw-d_x"})
    yield "create_cluster_metadata", lambda: create({"name": "__cluster_metadata"})
    yield "create_partitions_0", lambda: create({"name": "raw-p", "num_partitions": 0})
    yield "create_partitions_minus_2", lambda: create({"name": "raw-p", "num_partitions": -2})
    yield (
        "create_partitions_10001",
        lambda: create({"name": "raw-p", "num_partitions": 10001}, validate_only=True),
    )
    yield "create_rf_0", lambda: create({"name": "raw-p", "replication_factor": 0})
    yield "create_rf_2_on_one_broker", lambda: create({"name": "raw-p", "replication_factor": 2})
    yield (
        "create_unknown_config",
        lambda: create({"name": "raw-p", "configs": [{"name": "no.such", "value": "1"}]}),
    )
    yield (
        "create_bad_config_value",
        lambda: create({"name": "raw-p", "configs": [{"name": "retention.ms", "value": "x"}]}),
    )
    yield (
        "create_null_config_value",
        lambda: create({"name": "raw-p", "configs": [{"name": "retention.ms", "value": None}]}),
    )
    yield (
        "create_same_config_twice",
        lambda: create(
            {
                "name": "raw-p",
                "configs": [{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}],
            },
            validate_only=True,
        ),
    )
    yield (
        "create_two_validate_only_ids_differ",
        lambda: len(
            {create({"name": "raw-p"}, validate_only=True)["topics"][0]["topic_id"] for _ in "ab"}  # type: ignore[index]
        ),
    )

    def assign(*rows: tuple[int, list[int]], **kw: object) -> dict[str, object]:
        row = {"name": "raw-p", "num_partitions": -1, "replication_factor": -1} | kw
        return row | {"assignments": [{"partition_index": i, "broker_ids": b} for i, b in rows]}

    yield "create_assignment", lambda: create(assign((0, [1]), (1, [1])), validate_only=True)
    yield "create_assignment_and_partitions", lambda: create(assign((0, [1]), num_partitions=1))
    yield "create_assignment_gap", lambda: create(assign((0, [1]), (2, [1])))
    yield "create_assignment_unknown_broker", lambda: create(assign((0, [9])))
    yield "create_assignment_repeated_broker", lambda: create(assign((0, [1, 1])))
    yield "create_assignment_empty", lambda: create(assign((0, [])))
    yield "create_nothing", create
    yield (
        "create_good_and_bad",
        lambda: create({"name": "raw-good"}, {"name": "raw bad"}, {"name": "raw-orders"}),
    )
    yield "create_v1_is_gone", lambda: create({"name": "raw-p"}, version=1)

    yield "pages_all_limit_2", lambda: page_through(2)
    yield "pages_all_limit_1", lambda: page_through(1)
    yield "pages_full_row", lambda: pages("raw-orders")
    yield "pages_named_order_and_duplicates", lambda: pages("raw-plain", "raw-orders", "raw-plain")
    yield "pages_limit_0", lambda: pages("raw-orders", limit=0)
    yield "pages_limit_minus_1", lambda: pages("raw-orders", limit=-1)
    yield "pages_limit_3_ends_at_topic", lambda: pages("raw-orders", "raw-plain", limit=3)
    yield "pages_limit_3_ends_at_last_topic", lambda: pages("raw-orders", limit=3)
    yield "pages_cursor_middle", lambda: pages("raw-orders", cursor=("raw-orders", 1))
    yield "pages_cursor_past_partitions", lambda: pages("raw-orders", "raw-plain", cursor=("raw-orders", 9))
    yield "pages_cursor_negative", lambda: pages("raw-orders", cursor=("raw-orders", -1))
    yield "pages_cursor_not_in_named_list", lambda: pages("raw-orders", cursor=("raw-plain", 0))
    yield "pages_cursor_unknown_topic_all", lambda: pages(cursor=("raw-oz", 5), limit=1)
    yield "pages_cursor_invalid_name_all", lambda: pages(cursor=("raw oz/", 0), limit=1)
    yield "pages_cursor_past_the_end_all", lambda: pages(cursor=("zzz", 0))
    yield "pages_cursor_empty_name_all", lambda: pages(cursor=("", 0), limit=1)
    yield "pages_cursor_max_int", lambda: pages("raw-orders", cursor=("raw-orders", 2**31 - 1))
    yield "pages_cursor_max_int_minus_1_all", lambda: pages(cursor=("raw-orders", 2**31 - 2), limit=2000)
    yield "pages_unknown_name", lambda: pages("raw-none", "raw-plain")
    yield "pages_unknown_name_no_budget", lambda: pages("raw-none", "raw-none2", "raw-plain", limit=1)
    yield "pages_invalid_name", lambda: pages("raw bad/name")
    yield "pages_internal", lambda: pages("__consumer_offsets")

    yield "configs_all", lambda: configs((2, "raw-orders", None))
    yield "configs_empty_keys", lambda: len(configs((2, "raw-orders", []))["results"][0]["configs"])  # type: ignore[index]
    yield (
        "configs_synonyms_and_docs",
        lambda: configs(
            (2, "raw-orders", ["retention.ms", "cleanup.policy"]),
            include_synonyms=True,
            include_documentation=True,
        ),
    )
    yield "configs_unknown_key", lambda: configs((2, "raw-orders", ["no.such"]))
    yield "configs_unknown_topic", lambda: configs((2, "raw-none", None))
    yield "configs_invalid_topic", lambda: configs((2, "raw bad/name", None))
    yield "configs_empty_topic", lambda: configs((2, "", None))
    yield (
        "configs_same_twice",
        lambda: configs((2, "raw-plain", ["retention.ms"]), (2, "raw-plain", ["retention.ms"])),
    )
    yield "configs_broker", lambda: configs((4, "1", ["num.partitions", "auto.create.topics.enable"]))
    yield "configs_other_broker", lambda: configs((4, "9", ["num.partitions"]))
    yield "configs_broker_not_a_number", lambda: configs((4, "x", ["num.partitions"]))
    yield "configs_unknown_type", lambda: configs((77, "x", None))
    yield "list_config_resources_topics", lambda: send(a.ListConfigResourcesRequest, 1, resource_types=[2])

    yield "alter_set", lambda: alter("raw-plain", ("retention.ms", 0, "1000"))
    yield "alter_set_shows", lambda: configs((2, "raw-plain", ["retention.ms"]))
    yield "alter_delete", lambda: alter("raw-plain", ("retention.ms", 1, None))
    yield "alter_append", lambda: alter("raw-plain", ("cleanup.policy", 2, "compact"))
    yield "alter_append_not_a_list", lambda: alter("raw-plain", ("retention.ms", 2, "1"))
    yield "alter_unknown_key", lambda: alter("raw-plain", ("no.such", 0, "1"))
    yield "alter_bad_value", lambda: alter("raw-plain", ("retention.ms", 0, "x"))
    yield "alter_null_value", lambda: alter("raw-plain", ("retention.ms", 0, None))
    yield (
        "alter_duplicate_key",
        lambda: alter("raw-plain", ("retention.ms", 0, "1"), ("retention.ms", 0, "2")),
    )
    yield "alter_unknown_topic", lambda: alter("raw-none", ("retention.ms", 0, "1"))

    yield "partitions_grow", lambda: partitions("raw-plain", 4)
    yield "partitions_same", lambda: partitions("raw-plain", 4)
    yield "partitions_fewer", lambda: partitions("raw-plain", 2)
    yield "partitions_zero", lambda: partitions("raw-plain", 0)
    yield "partitions_unknown_topic", lambda: partitions("raw-none", 2)
    yield "partitions_assignment_count", lambda: partitions("raw-plain", 6, assignments=[{"broker_ids": [1]}])

    yield "cluster_endpoint_type_2", lambda: send(a.DescribeClusterRequest, 2, endpoint_type=2)
    yield "cluster_endpoint_type_9", lambda: send(a.DescribeClusterRequest, 2, endpoint_type=9)
    yield (
        "cluster_operations",
        lambda: send(a.DescribeClusterRequest, 2, include_cluster_authorized_operations=True),
    )

    yield "delete_name_and_id", lambda: delete({"name": "raw-good", "topic_id": ids()["raw-good"]})
    yield "delete_neither", lambda: delete({"name": None})
    yield "delete_nothing", delete
    yield "delete_same_name_twice", lambda: delete({"name": "raw-good"}, {"name": "raw-good"})
    yield (
        "delete_same_id_twice",
        lambda: delete(*[dict[str, object](name=None, topic_id=ids()["raw-good"])] * 2),
    )
    yield (
        "delete_id_of_a_given_name",
        lambda: delete({"name": "raw-good"}, {"name": None, "topic_id": ids()["raw-good"]}),
    )
    yield "delete_id_of_a_given_name_left_it", lambda: "raw-good" in ids()
    yield "delete_unknown_id", lambda: delete({"name": None, "topic_id": NO_SUCH_ID})
    yield "delete_invalid_name", lambda: delete({"name": "raw bad/name"})
    yield "delete_by_name", lambda: delete({"name": "raw-good"})
    yield "delete_by_name_again", lambda: delete({"name": "raw-good"})
    held: dict[str, uuid.UUID] = {}
    yield (
        "delete_by_id",
        after(lambda: held.update(ids()), lambda: delete({"name": None, "topic_id": held["raw-plain"]})),
    )
    yield "delete_by_id_again", lambda: delete({"name": None, "topic_id": held["raw-plain"]})
    yield (
        "describe_by_deleted_id",
        lambda: metadata(13, topics=[{"topic_id": held["raw-plain"], "name": None}]),
    )
    yield (
        "recreate_gets_a_new_id",
        after(lambda: create({"name": "raw-plain"}), lambda: ids()["raw-plain"] != held["raw-plain"]),
    )
    yield (
        "old_id_after_recreate",
        lambda: metadata(13, topics=[{"topic_id": held["raw-plain"], "name": None}]),
    )
    yield (
        "pages_named_cursor_topic_deleted",
        after(
            lambda: delete({"name": "raw-orders"}),
            lambda: pages("raw-orders", "raw-plain", cursor=("raw-orders", 1)),
        ),
    )
    yield "pages_all_cursor_topic_deleted", lambda: pages(cursor=("raw-orders", 1), limit=1)

    yield "wire_unknown_api_key", unknown_api_key
    yield (
        "wire_version_too_new",
        lambda: (
            "connection closed"
            if send.exchange(struct.pack(">hhih3sBBBBBB", 3, 99, 1, 3, b"raw", 0, 1, 0, 0, 0, 0)) is None
            else "answered"
        ),
    )
    yield "wire_api_versions_too_new", api_versions_too_new
    yield "wire_api_versions_bad_software_name", api_versions_bad_name
    yield "wire_unknown_tagged_field", unknown_tag
    yield "wire_trailing_bytes", trailing_bytes
    yield "wire_short_body", short_body
