"""The answers of two scripted nodes of a Kafka cluster, each of which has some groups, topics and configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_core.wire.kafka import (
    ALTER_CONFIGS,
    CREATE_ACLS,
    DELETE_GROUPS,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    LEAVE_GROUP,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    Fields,
)
from tests.support.scripted_kafka import Asked, Handler, ScriptedKafka, metadata_of

__all__ = ["KEPT", "handlers_of_node"]

#: By group, topic and broker the node that has them.
KEPT: Mapping[str, int] = {"a": 1, "b": 2, "c": 1, "d": 2, "1": 1, "2": 2}


def handlers_of_node(nodes: list[ScriptedKafka], groups: Mapping[int, list[str]]) -> dict[Any, Handler]:
    """Of the node that a handler is for, the last one that was made."""
    number = len(nodes)

    def metadata(asked: Asked) -> Fields:
        rows = [
            {"name": row["name"], "partitions": [{"partition_index": 0, "leader_id": KEPT[row["name"]]}]}
            for row in asked.value["topics"] or ()
            if row["name"] in KEPT
        ]
        return metadata_of(*nodes, topics=rows)

    def coordinators(asked: Asked) -> Fields:
        keys = asked.value["coordinator_keys"]
        return {"coordinators": [{"key": key, "node_id": KEPT[key]} for key in keys]}

    def described(asked: Asked) -> Fields:
        assert {KEPT[name] for name in asked.value["groups"]} == {number}
        return {"groups": [{"group_id": name, "group_state": "Stable"} for name in asked.value["groups"]]}

    def configs(asked: Asked) -> Fields:
        rows = [
            {key: row[key] for key in ("resource_type", "resource_name")} for row in asked.value["resources"]
        ]
        known = {str(number), f"+{number}"}
        assert {row["resource_name"] for row in rows if row["resource_type"] == 4}.isdisjoint(
            KEPT.keys() - known
        )
        return {
            "results": [
                {
                    **row,
                    "error_message": f"{number}",
                    "error_code": 42
                    if row["resource_type"] == 4 and row["resource_name"] not in known
                    else 0,
                }
                for row in reversed(rows)
            ]
        }

    def altered(asked: Asked) -> Fields:
        rows = []
        for row in asked.value["resources"]:
            key = {key: row[key] for key in ("resource_type", "resource_name")}
            is_other = key["resource_type"] in (4, 8) and key["resource_name"] not in ("", str(number))
            rows.append({**key, "error_code": 42 if is_other else 0, "error_message": f"{number}"})
        return {"responses": rows}

    def offsets(asked: Asked) -> Fields:
        assert {KEPT[row["name"]] for row in asked.value["topics"] if row["partitions"]} <= {number}
        return {
            "topics": [
                {
                    "name": row["name"],
                    "partitions": [{"partition_index": 0, "offset": number} for _ in row["partitions"]],
                }
                for row in asked.value["topics"]
            ]
        }

    def producers(asked: Asked) -> Fields:
        return {
            "topics": [
                {
                    "name": row["name"],
                    "partitions": [{"partition_index": each} for each in row["partition_indexes"]],
                }
                for row in asked.value["topics"]
            ]
        }

    return {
        DESCRIBE_PRODUCERS: producers,
        METADATA: metadata,
        FIND_COORDINATOR: coordinators,
        LIST_GROUPS: lambda _: {"groups": [{"group_id": name} for name in groups[number]]},
        **dict.fromkeys(
            (
                CREATE_ACLS,
                DELETE_GROUPS,
                DESCRIBE_ACLS,
                DESCRIBE_LOG_DIRS,
                LEAVE_GROUP,
                LIST_PARTITION_REASSIGNMENTS,
                LIST_TRANSACTIONS,
                OFFSET_COMMIT,
                OFFSET_DELETE,
                OFFSET_FETCH,
            ),
            lambda _: {},
        ),
        DESCRIBE_GROUPS: described,
        DESCRIBE_CONFIGS: configs,
        ALTER_CONFIGS: altered,
        INCREMENTAL_ALTER_CONFIGS: altered,
        LIST_OFFSETS: offsets,
    }
