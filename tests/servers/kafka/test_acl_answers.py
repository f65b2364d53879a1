"""The answers of all APIs to a client that may do little are those of a real Kafka broker (tests/vectors)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any, Final

from broker_core.catalog import AclRow, SqliteCatalog
from broker_core.names import NamespaceName, TopicName
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.wire.kafka import (
    ALTER_CONFIGS,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_TOPICS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_TOPIC_PARTITIONS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    LIST_GROUPS,
    METADATA,
    NOT_REQUESTED,
    ZERO_ID,
    Api,
    Fields,
)
from tests.support.kafka_acls import put_acls
from tests.support.kafka_serving import kafka_broker, raw_client
from tests.support.vectors import acl_answers

_THERE, _OTHER, _GONE, _NEW, _BAD = "there", "other", "gone", "new", "bad name"
_UNKNOWN: Final = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")
_NAMESPACE: Final = NamespaceName.parse("public/default")
_TOPIC, _BROKER = 2, 4
#: Kafka's text for these has the request as its code shows it.
_OWN_TEXT: Final = re.compile("REQUEST needs (DESCRIBE|ALTER) permission.")
#: Answers that differ, each with the reason.
_DIFFERENT: Final = {
    ("cluster: alter configs", "alter 4 1"): "the configs of the broker are in the settings alone",
    ("cluster: alter configs", "replace 4 1"): "the same",
    ("everything", "alter 4 1"): "the same",
    ("everything", "replace 4 1"): "the same",
    ("everything", "group"): "there are no groups; the recorded broker was asked before it had a coordinator",
}
#: The name of a request, its API and version, the field with its rows, and its body.
Request = tuple[str, Api, int, str, Fields]


def requests(ids: dict[str, uuid.UUID]) -> Iterator[Request]:
    """The recorded requests; ``ids`` is looked at when each is made."""
    by_name = [{"name": name} for name in (_THERE, _GONE, _BAD)]
    by_id = [{"name": None, "topic_id": found} for found in (ids[_THERE], _UNKNOWN)]
    told = {"include_topic_authorized_operations": True}
    yield "metadata all", METADATA, 13, "topics", {"topics": None, **told}
    yield "metadata names", METADATA, 13, "topics", {"topics": by_name, **told}
    yield "metadata names 1", METADATA, 1, "topics", {"topics": by_name}
    cluster = {"topics": by_name, "include_cluster_authorized_operations": True}
    yield "metadata names 8", METADATA, 8, "topics", cluster
    yield "metadata ids", METADATA, 12, "topics", {"topics": by_id, **told}
    yield "partitions all", DESCRIBE_TOPIC_PARTITIONS, 0, "topics", {"topics": []}
    yield "partitions names", DESCRIBE_TOPIC_PARTITIONS, 0, "topics", {"topics": by_name}
    yield "cluster", DESCRIBE_CLUSTER, 1, "", {"include_cluster_authorized_operations": True}
    yield "config resources", LIST_CONFIG_RESOURCES, 1, "config_resources", {"resource_types": [_TOPIC]}
    yield "groups", LIST_GROUPS, 5, "groups", {}
    yield "group", DESCRIBE_GROUPS, 6, "groups", {"groups": ["group"]}
    for name in (_THERE, _NEW, _BAD, "__cluster_metadata"):
        yield f"create {name}, validated", CREATE_TOPICS, 7, "topics", _create(name, validate_only=True)
    for version in (4, 7):
        yield f"create {_NEW} {version}", CREATE_TOPICS, version, "topics", _create(_NEW)
    yield "delete gone", DELETE_TOPICS, 6, "responses", _delete({"name": _GONE})
    yield "delete name", DELETE_TOPICS, 6, "responses", _delete({"name": _THERE})
    yield "delete id", DELETE_TOPICS, 6, "responses", _delete({"topic_id": ids[_THERE]})
    yield "delete unknown id", DELETE_TOPICS, 6, "responses", _delete({"topic_id": _UNKNOWN})
    both = {"name": _THERE, "topic_id": ids[_THERE]}
    yield "delete name with id", DELETE_TOPICS, 6, "responses", _delete(both)
    apart = _delete({"name": _THERE}, {"topic_id": ids[_THERE]})
    yield "delete name and id", DELETE_TOPICS, 6, "responses", apart
    names = {"topic_names": [_THERE, _GONE], "timeout_ms": 10_000}
    yield "delete names 3", DELETE_TOPICS, 3, "responses", names
    counts = [{"name": name, "count": 2, "assignments": None} for name in (_THERE, _GONE)]
    grown = {"topics": counts, "timeout_ms": 10_000, "validate_only": True}
    yield "create partitions", CREATE_PARTITIONS, 3, "results", grown
    for kind, name in ((_TOPIC, _THERE), (_TOPIC, _GONE), (_TOPIC, _BAD), (_BROKER, "1")):
        row = {"resource_type": kind, "resource_name": name}
        asked = {"resources": [row | {"configuration_keys": ["retention.ms"]}]}
        yield f"configs {kind} {name}", DESCRIBE_CONFIGS, 4, "results", asked
        config = {"name": "retention.ms" if kind == _TOPIC else "log.retention.ms", "value": "60000"}
        changed = {
            "resources": [row | {"configs": [config | {"config_operation": 0}]}],
            "validate_only": True,
        }
        yield f"alter {kind} {name}", INCREMENTAL_ALTER_CONFIGS, 1, "responses", changed
        changed = {"resources": [row | {"configs": [config]}], "validate_only": True}
        yield f"replace {kind} {name}", ALTER_CONFIGS, 2, "responses", changed
    nothing = {
        "resource_type_filter": _TOPIC,
        "resource_name_filter": "nothing",
        "operation": 1,
        "permission_type": 1,
    }
    yield "describe acls", DESCRIBE_ACLS, 3, "", nothing
    yield "delete acls", DELETE_ACLS, 3, "filter_results", {"filters": [nothing]}
    creation = {
        "resource_type": _TOPIC,
        "resource_name": "nothing",
        "principal": "User:eve",
        "host": "*",
        "operation": 3,
        "permission_type": 2,
    }
    yield "create acls", CREATE_ACLS, 3, "results", {"creations": [creation]}


def _create(name: str, **more: Any) -> Fields:
    row = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    return {"topics": [row], "timeout_ms": 10_000, **more}


def _delete(*rows: Fields) -> Fields:
    return {"topics": list(rows), "timeout_ms": 10_000}


def restored(catalog: SqliteCatalog) -> dict[str, uuid.UUID]:
    """The two topics that there are before each request, and no others; their ids."""
    for name in (_THERE, _OTHER, _NEW):
        topic = TopicName("persistent", _NAMESPACE, name)
        found = catalog.topic(topic)
        if found is None and name != _NEW:
            catalog.create(topic, partitions=1)
        elif found is not None and name == _NEW:
            catalog.delete(topic)
    found_ids = {}
    for name in (_THERE, _OTHER):
        record = catalog.topic(TopicName("persistent", _NAMESPACE, name))
        assert record is not None
        found_ids[name] = record.topic_id
    return found_ids


def plain(recorded: Fields, row: Fields, ids: dict[str, uuid.UUID]) -> Fields:
    """What was recorded of an answer or a row, in ours."""
    known: dict[uuid.UUID, str] = {ids[_THERE]: _THERE, ids[_OTHER]: _OTHER, _UNKNOWN: "unknown", ZERO_ID: ""}
    found: Fields = {}
    for key in recorded:
        if key == "operations":
            bits = next(row[name] for name in row if name.endswith("authorized_operations"))
            found[key] = None if bits == NOT_REQUESTED else bits
        elif key == "configs":
            found[key] = len(row[key] or ())
        elif key == "topic_id":
            found[key] = known.get(row[key], "new")
        elif key != "rows":
            found[key] = row[key]
    return found


async def test_answers_under_acls_are_those_of_kafka(catalog: SqliteCatalog) -> None:
    different = set()
    asked = 0
    async with kafka_broker(catalog.path.parent, super_users=("User:root",)) as broker:
        assert broker.kafka_address is not None
        for scene, case in acl_answers().items():
            rows = [AclRow(*row)._replace(principal="User:ANONYMOUS") for row in case["acls"]]
            async with raw_client(broker.kafka_address) as client:
                put_acls(catalog, *rows)
                ids = restored(catalog)
                for number in range(len(list(requests(ids)))):
                    ids = restored(catalog)
                    name, api, version, field, body = list(requests(ids))[number]
                    if api.key not in HANDLERS:
                        continue
                    asked += 1
                    answer = await client.ask(api, version, body)
                    if api is CREATE_ACLS:
                        put_acls(catalog, *rows)
                    recorded = case["answers"][name]
                    ours = plain(recorded, answer, ids)
                    theirs = {key: value for key, value in recorded.items() if key != "rows"}
                    if field:
                        shape = recorded["rows"][0] if recorded["rows"] else {}
                        found = [plain(shape, row, ids) for row in answer[field]]
                        ours["rows"] = sorted(found, key=json.dumps)
                        theirs["rows"] = recorded["rows"]
                    if (scene, name) in _DIFFERENT:
                        different |= {(scene, name)} if ours != theirs else set()
                    else:
                        assert with_own_text(theirs) == ours, (scene, name)
    assert different == set(_DIFFERENT)
    assert asked > 200


def with_own_text(recorded: Fields) -> Fields:
    """A recorded answer with our words if Kafka's are not readable."""
    text = json.dumps(recorded)
    found: Fields = json.loads(
        _OWN_TEXT.sub(lambda words: f"User:ANONYMOUS needs {words[1]} permission on the cluster.", text)
    )
    return found
