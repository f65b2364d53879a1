"""What raw requests answer, in every version of the topic APIs: 198 cases, each meets what those before it made."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tests.interop.kafka_clients.python.case_lines import (
    CONFIGS,
    NO_SUCH_ID,
    Cases,
    Server,
    say,
    server_of_arguments,
)
from tests.interop.kafka_clients.python.raw_requests import RawRequests

_LONG: Final = "x" * 250


def raw_cases(server: Server) -> Cases:
    """All of them, in their order."""
    ask = RawRequests(server)
    after = _after(server)
    yield from _versions(ask)
    yield from _metadata(ask)
    yield from _create(ask, after)
    yield from _pages(ask)
    yield from _configs(ask)
    yield from _changes(ask)
    yield from _delete(ask, after)
    yield from _wire(ask)
    ask.close()


def _after(server: Server) -> Callable[[Callable[[], object], Callable[[], object]], Callable[[], object]]:
    """What is asked after a change."""

    def after(change: Callable[[], object], then: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            change()
            time.sleep(server.settle)
            return then()

        return run

    return after


def _versions(ask: RawRequests) -> Cases:
    # Every version that a 4.x broker has, for the same question.
    for v in range(5):
        yield f"v/api_versions_v{v}", partial(ask.api_versions, v)
    yield (
        "create_with_configs",
        lambda: ask.create(
            {
                "name": "raw-orders",
                "num_partitions": 3,
                "configs": [{"name": k, "value": x} for k, x in CONFIGS.items()],
            }
        ),
    )
    yield (
        "create_defaults",
        lambda: ask.create({"name": "raw-plain", "num_partitions": -1, "replication_factor": -1}),
    )
    for v in range(2, 8):
        yield (
            f"v/create_topics_validate_only_v{v}",
            partial(ask.create, {"name": "raw-dry", "num_partitions": 2}, version=v, validate_only=True),
        )
        yield f"v/create_topics_exists_v{v}", partial(ask.create, {"name": "raw-orders"}, version=v)
    for v in range(14):
        yield f"v/metadata_by_name_v{v}", partial(ask.metadata, v, topics=["raw-orders"])
        yield f"v/metadata_unknown_name_v{v}", partial(ask.metadata, v, topics=["raw-none"])
    for v in range(1, 7):
        yield f"v/delete_unknown_v{v}", partial(ask.delete, {"name": "raw-none"}, version=v)
    for v in range(1, 5):
        yield (
            f"v/describe_configs_v{v}",
            partial(ask.configs, (2, "raw-orders", ["retention.ms"]), version=v),
        )
    for v in range(4):
        yield (
            f"v/create_partitions_validate_only_v{v}",
            partial(ask.partitions, "raw-plain", 2, v, validate_only=True),
        )
    for v in range(2):
        yield (
            f"v/incremental_alter_validate_only_v{v}",
            partial(ask.alter, "raw-plain", ("retention.ms", 0, "1000"), version=v, validate_only=True),
        )
    for v in range(3):
        yield f"v/describe_cluster_v{v}", partial(ask.cluster, v)


def _metadata(ask: RawRequests) -> Cases:
    yield "list_all", lambda: ask.metadata(13, topics=None)
    yield "list_none", lambda: ask.metadata(13, topics=[])
    yield "list_v0_empty_is_all", lambda: ask.metadata(0, topics=[])
    yield (
        "list_with_authorized_operations",
        lambda: ask.metadata(12, topics=["raw-plain"], include_topic_authorized_operations=True),
    )
    yield (
        "list_v8_cluster_operations",
        lambda: ask.metadata(
            8,
            topics=["raw-plain"],
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        ),
    )
    yield (
        "metadata_unknown_auto_create_true",
        lambda: ask.metadata(13, topics=["raw-auto"], allow_auto_topic_creation=True),
    )
    yield "metadata_unknown_auto_create_stays_away", lambda: "raw-auto" in ask.ids()
    yield "metadata_invalid_name", lambda: ask.metadata(13, topics=["raw bad/name"])
    yield "metadata_empty_name", lambda: ask.metadata(13, topics=[""])
    yield "metadata_name_250", lambda: ask.metadata(13, topics=[_LONG])
    yield "metadata_same_name_twice", lambda: ask.metadata(13, topics=["raw-plain", "raw-plain"])
    yield "metadata_several_order", lambda: ask.metadata(13, topics=["raw-plain", "raw-none", "raw-orders"])
    yield (
        "metadata_by_id",
        lambda: ask.metadata(13, topics=[{"topic_id": ask.ids()["raw-plain"], "name": None}]),
    )
    yield (
        "metadata_by_id_v12",
        lambda: ask.metadata(12, topics=[{"topic_id": ask.ids()["raw-plain"], "name": None}]),
    )
    yield (
        "metadata_by_id_v10",
        lambda: ask.metadata(10, topics=[{"topic_id": ask.ids()["raw-plain"], "name": ""}]),
    )
    yield "metadata_unknown_id", lambda: ask.metadata(13, topics=[{"topic_id": NO_SUCH_ID, "name": None}])
    yield "metadata_zero_id_null_name", lambda: ask.metadata(13, topics=[{"topic_id": None, "name": None}])
    yield (
        "metadata_id_and_name_mixed",
        lambda: ask.metadata(
            13, topics=[{"topic_id": ask.ids()["raw-plain"], "name": None}, {"name": "raw-orders"}]
        ),
    )
    yield (
        "metadata_id_and_name_in_one_row",
        lambda: ask.metadata(13, topics=[{"topic_id": ask.ids()["raw-plain"], "name": "raw-orders"}]),
    )


def _create(ask: RawRequests, after: Any) -> Cases:
    yield "create_validate_only_leaves_nothing", lambda: "raw-dry" in ask.ids()
    yield "create_validate_only_duplicate", lambda: ask.create({"name": "raw-orders"}, validate_only=True)
    yield "create_duplicate", lambda: ask.create({"name": "raw-orders"})
    yield (
        "create_duplicate_in_request",
        lambda: ask.create({"name": "raw-twice"}, {"name": "raw-twice"}, {"name": "raw-one"}),
    )
    yield (
        "create_duplicate_in_request_made_the_other",
        lambda: sorted({"raw-twice", "raw-one"} & set(ask.ids())),
    )
    for label, name in (
        ("invalid_char", "raw bad/name"),
        ("empty_name", ""),
        ("dot", "."),
        ("dots", ".."),
        ("250", _LONG),
    ):
        yield f"create_{label}", partial(ask.create, {"name": name})
    yield "create_name_249", lambda: ask.create({"name": _LONG[:249]}, validate_only=True)
    yield "create_null_name", lambda: ask.create({"name": None})
    yield (
        "create_collision",
        after(lambda: ask.create({"name": "raw-c.x"}), lambda: ask.create({"name": "raw-c_x"})),
    )
    yield "create_collision_in_request", lambda: ask.create({"name": "raw-d.x"}, {"name": "raw-d_x"})
    yield "create_cluster_metadata", lambda: ask.create({"name": "__cluster_metadata"})
    yield "create_partitions_0", lambda: ask.create({"name": "raw-p", "num_partitions": 0})
    yield "create_partitions_minus_2", lambda: ask.create({"name": "raw-p", "num_partitions": -2})
    yield (
        "create_partitions_10001",
        lambda: ask.create({"name": "raw-p", "num_partitions": 10001}, validate_only=True),
    )
    yield "create_rf_0", lambda: ask.create({"name": "raw-p", "replication_factor": 0})
    yield "create_rf_2_on_one_broker", lambda: ask.create({"name": "raw-p", "replication_factor": 2})
    yield (
        "create_unknown_config",
        lambda: ask.create({"name": "raw-p", "configs": [{"name": "no.such", "value": "1"}]}),
    )
    yield (
        "create_bad_config_value",
        lambda: ask.create({"name": "raw-p", "configs": [{"name": "retention.ms", "value": "x"}]}),
    )
    yield (
        "create_null_config_value",
        lambda: ask.create({"name": "raw-p", "configs": [{"name": "retention.ms", "value": None}]}),
    )
    yield (
        "create_same_config_twice",
        lambda: ask.create(
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
            {ask.create({"name": "raw-p"}, validate_only=True)["topics"][0]["topic_id"] for _ in "ab"}
        ),
    )

    def assign(*rows: tuple[int, list[int]], **kw: object) -> dict[str, object]:
        row = {"name": "raw-p", "num_partitions": -1, "replication_factor": -1} | kw
        return row | {"assignments": [{"partition_index": i, "broker_ids": b} for i, b in rows]}

    yield "create_assignment", lambda: ask.create(assign((0, [1]), (1, [1])), validate_only=True)
    yield "create_assignment_and_partitions", lambda: ask.create(assign((0, [1]), num_partitions=1))
    yield "create_assignment_gap", lambda: ask.create(assign((0, [1]), (2, [1])))
    yield "create_assignment_unknown_broker", lambda: ask.create(assign((0, [9])))
    yield "create_assignment_repeated_broker", lambda: ask.create(assign((0, [1, 1])))
    yield "create_assignment_empty", lambda: ask.create(assign((0, [])))
    yield "create_nothing", ask.create
    yield (
        "create_good_and_bad",
        lambda: ask.create({"name": "raw-good"}, {"name": "raw bad"}, {"name": "raw-orders"}),
    )
    yield "create_v1_is_gone", lambda: ask.create({"name": "raw-p"}, version=1)


def _pages(ask: RawRequests) -> Cases:
    yield "pages_all_limit_2", lambda: ask.page_through(2)
    yield "pages_all_limit_1", lambda: ask.page_through(1)
    yield "pages_full_row", lambda: ask.pages("raw-orders")
    yield "pages_named_order_and_duplicates", lambda: ask.pages("raw-plain", "raw-orders", "raw-plain")
    yield "pages_limit_0", lambda: ask.pages("raw-orders", limit=0)
    yield "pages_limit_minus_1", lambda: ask.pages("raw-orders", limit=-1)
    yield "pages_limit_3_ends_at_topic", lambda: ask.pages("raw-orders", "raw-plain", limit=3)
    yield "pages_limit_3_ends_at_last_topic", lambda: ask.pages("raw-orders", limit=3)
    yield "pages_cursor_middle", lambda: ask.pages("raw-orders", cursor=("raw-orders", 1))
    yield (
        "pages_cursor_past_partitions",
        lambda: ask.pages("raw-orders", "raw-plain", cursor=("raw-orders", 9)),
    )
    yield "pages_cursor_negative", lambda: ask.pages("raw-orders", cursor=("raw-orders", -1))
    yield "pages_cursor_not_in_named_list", lambda: ask.pages("raw-orders", cursor=("raw-plain", 0))
    yield "pages_cursor_unknown_topic_all", lambda: ask.pages(cursor=("raw-oz", 5), limit=1)
    yield "pages_cursor_invalid_name_all", lambda: ask.pages(cursor=("raw oz/", 0), limit=1)
    yield "pages_cursor_past_the_end_all", lambda: ask.pages(cursor=("zzz", 0))
    yield "pages_cursor_empty_name_all", lambda: ask.pages(cursor=("", 0), limit=1)
    yield "pages_cursor_max_int", lambda: ask.pages("raw-orders", cursor=("raw-orders", 2**31 - 1))
    yield "pages_cursor_max_int_minus_1_all", lambda: ask.pages(cursor=("raw-orders", 2**31 - 2), limit=2000)
    yield "pages_unknown_name", lambda: ask.pages("raw-none", "raw-plain")
    yield "pages_unknown_name_no_budget", lambda: ask.pages("raw-none", "raw-none2", "raw-plain", limit=1)
    yield "pages_invalid_name", lambda: ask.pages("raw bad/name")
    yield "pages_internal", lambda: ask.pages("__consumer_offsets")


def _configs(ask: RawRequests) -> Cases:
    yield "configs_all", lambda: ask.configs((2, "raw-orders", None))
    yield "configs_empty_keys", lambda: len(ask.configs((2, "raw-orders", []))["results"][0]["configs"])
    yield (
        "configs_synonyms_and_docs",
        lambda: ask.configs(
            (2, "raw-orders", ["retention.ms", "cleanup.policy"]),
            include_synonyms=True,
            include_documentation=True,
        ),
    )
    yield "configs_unknown_key", lambda: ask.configs((2, "raw-orders", ["no.such"]))
    yield "configs_unknown_topic", lambda: ask.configs((2, "raw-none", None))
    yield "configs_invalid_topic", lambda: ask.configs((2, "raw bad/name", None))
    yield "configs_empty_topic", lambda: ask.configs((2, "", None))
    yield (
        "configs_same_twice",
        lambda: ask.configs((2, "raw-plain", ["retention.ms"]), (2, "raw-plain", ["retention.ms"])),
    )
    yield "configs_broker", lambda: ask.configs((4, "1", ["num.partitions", "auto.create.topics.enable"]))
    yield "configs_other_broker", lambda: ask.configs((4, "9", ["num.partitions"]))
    yield "configs_broker_not_a_number", lambda: ask.configs((4, "x", ["num.partitions"]))
    yield "configs_unknown_type", lambda: ask.configs((77, "x", None))
    yield "list_config_resources_topics", lambda: ask.config_resources(2)


def _changes(ask: RawRequests) -> Cases:
    yield "alter_set", lambda: ask.alter("raw-plain", ("retention.ms", 0, "1000"))
    yield "alter_set_shows", lambda: ask.configs((2, "raw-plain", ["retention.ms"]))
    yield "alter_delete", lambda: ask.alter("raw-plain", ("retention.ms", 1, None))
    yield "alter_append", lambda: ask.alter("raw-plain", ("cleanup.policy", 2, "compact"))
    yield "alter_append_not_a_list", lambda: ask.alter("raw-plain", ("retention.ms", 2, "1"))
    yield "alter_unknown_key", lambda: ask.alter("raw-plain", ("no.such", 0, "1"))
    yield "alter_bad_value", lambda: ask.alter("raw-plain", ("retention.ms", 0, "x"))
    yield "alter_null_value", lambda: ask.alter("raw-plain", ("retention.ms", 0, None))
    yield (
        "alter_duplicate_key",
        lambda: ask.alter("raw-plain", ("retention.ms", 0, "1"), ("retention.ms", 0, "2")),
    )
    yield "alter_unknown_topic", lambda: ask.alter("raw-none", ("retention.ms", 0, "1"))

    yield "partitions_grow", lambda: ask.partitions("raw-plain", 4)
    yield "partitions_same", lambda: ask.partitions("raw-plain", 4)
    yield "partitions_fewer", lambda: ask.partitions("raw-plain", 2)
    yield "partitions_zero", lambda: ask.partitions("raw-plain", 0)
    yield "partitions_unknown_topic", lambda: ask.partitions("raw-none", 2)
    yield (
        "partitions_assignment_count",
        lambda: ask.partitions("raw-plain", 6, assignments=[{"broker_ids": [1]}]),
    )

    yield "cluster_endpoint_type_2", lambda: ask.cluster(endpoint_type=2)
    yield "cluster_endpoint_type_9", lambda: ask.cluster(endpoint_type=9)
    yield "cluster_operations", lambda: ask.cluster(include_cluster_authorized_operations=True)


def _delete(ask: RawRequests, after: Any) -> Cases:
    yield "delete_name_and_id", lambda: ask.delete({"name": "raw-good", "topic_id": ask.ids()["raw-good"]})
    yield "delete_neither", lambda: ask.delete({"name": None})
    yield "delete_nothing", ask.delete
    yield "delete_same_name_twice", lambda: ask.delete({"name": "raw-good"}, {"name": "raw-good"})
    yield "delete_same_id_twice", lambda: ask.delete(*[{"name": None, "topic_id": ask.ids()["raw-good"]}] * 2)
    yield (
        "delete_id_of_a_given_name",
        lambda: ask.delete({"name": "raw-good"}, {"name": None, "topic_id": ask.ids()["raw-good"]}),
    )
    yield "delete_id_of_a_given_name_left_it", lambda: "raw-good" in ask.ids()
    yield "delete_unknown_id", lambda: ask.delete({"name": None, "topic_id": NO_SUCH_ID})
    yield "delete_invalid_name", lambda: ask.delete({"name": "raw bad/name"})
    yield "delete_by_name", lambda: ask.delete({"name": "raw-good"})
    yield "delete_by_name_again", lambda: ask.delete({"name": "raw-good"})
    held: dict[str, uuid.UUID] = {}
    yield (
        "delete_by_id",
        after(
            lambda: held.update(ask.ids()), lambda: ask.delete({"name": None, "topic_id": held["raw-plain"]})
        ),
    )
    yield "delete_by_id_again", lambda: ask.delete({"name": None, "topic_id": held["raw-plain"]})
    yield (
        "describe_by_deleted_id",
        lambda: ask.metadata(13, topics=[{"topic_id": held["raw-plain"], "name": None}]),
    )
    yield (
        "recreate_gets_a_new_id",
        after(lambda: ask.create({"name": "raw-plain"}), lambda: ask.ids()["raw-plain"] != held["raw-plain"]),
    )
    yield (
        "old_id_after_recreate",
        lambda: ask.metadata(13, topics=[{"topic_id": held["raw-plain"], "name": None}]),
    )
    yield (
        "pages_named_cursor_topic_deleted",
        after(
            lambda: ask.delete({"name": "raw-orders"}),
            lambda: ask.pages("raw-orders", "raw-plain", cursor=("raw-orders", 1)),
        ),
    )
    yield "pages_all_cursor_topic_deleted", lambda: ask.pages(cursor=("raw-orders", 1), limit=1)


def _wire(ask: RawRequests) -> Cases:
    yield "wire_unknown_api_key", ask.unknown_key
    yield "wire_version_too_new", ask.version_too_new
    yield "wire_api_versions_too_new", ask.api_versions_too_new
    yield "wire_api_versions_bad_software_name", ask.api_versions_bad_name
    yield "wire_unknown_tagged_field", ask.unknown_tag
    yield "wire_trailing_bytes", ask.trailing_bytes
    yield "wire_short_body", ask.short_body


if __name__ == "__main__":
    _server = server_of_arguments()
    say(_server, raw_cases(_server))
