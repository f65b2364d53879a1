"""Record what the APIs of a real Kafka broker answer to a client that may do little.

``python -m tests.interop.record_acl_answers HOST:PORT`` writes ``tests/vectors/kafka-4.3.1-acl-answers.json``, with the
first broker of :mod:`tests.interop.record_acls`.
"""

from __future__ import annotations

import json
import re
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kafka.protocol.admin import (
    AlterConfigsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
)
from kafka.protocol.metadata import MetadataRequest

from tests.interop.record_acls import AclPeer, Binding, bits_of, filter_row

_OUT: Final = Path(__file__).resolve().parents[1] / "vectors" / "kafka-4.3.1-acl-answers.json"
_THERE, _OTHER, _GONE, _NEW, _BAD = "there", "other", "gone", "new", "bad name"
_UNKNOWN: Final = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")
_ZERO: Final = uuid.UUID(int=0)
#: What a request does is not seen by the next one at once.
_SETTLE: Final = 0.15
#: Kafka names the request as its code has it.
_REQUEST: Final = re.compile(r"^Request Request\(.*\)(?= needs )")
_KEPT: Final = (
    "error_code",
    "error_message",
    "name",
    "topic_name",
    "resource_type",
    "resource_name",
    "group_id",
    "topic_id",
    "num_partitions",
    "replication_factor",
    "topic_config_error_code",
)

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS = (
    3,
    4,
    5,
    6,
    7,
    8,
    10,
    11,
)


def _on(name: str, operation: int, *, kind: int = 2, pattern: int = 3, permission: int = 3) -> Binding:
    return (kind, name, pattern, "User:ann", "*", operation, permission)


def _cluster(operation: int) -> Binding:
    return _on("kafka-cluster", operation, kind=4)


#: What the client may do, by a name.
_SCENES: Final[dict[str, list[Binding]]] = {
    "nothing": [],
    "describe": [_on(_THERE, _DESCRIBE), _on(_GONE, _DESCRIBE)],
    "describe all": [_on("*", _DESCRIBE)],
    "describe a prefix": [_on("the", _DESCRIBE, pattern=4)],
    "delete": [_on(_THERE, _DELETE), _on(_GONE, _DELETE)],
    "delete, but not describe": [
        _on(_THERE, _DELETE),
        _on(_GONE, _DELETE),
        _on("*", _DESCRIBE, permission=2),
    ],
    "create": [_on(_THERE, _CREATE), _on(_NEW, _CREATE), _on(_BAD, _CREATE)],
    "create and describe configs": [_on(_NEW, _CREATE), _on(_NEW, _DESCRIBE_CONFIGS)],
    "alter": [_on(_THERE, _ALTER), _on(_GONE, _ALTER)],
    "describe configs": [
        _on(_THERE, _DESCRIBE_CONFIGS),
        _on(_GONE, _DESCRIBE_CONFIGS),
        _on(_BAD, _DESCRIBE_CONFIGS),
    ],
    "alter configs": [_on(_THERE, _ALTER_CONFIGS), _on(_GONE, _ALTER_CONFIGS), _on(_BAD, _ALTER_CONFIGS)],
    "cluster: create": [_cluster(_CREATE)],
    "cluster: delete": [_cluster(_DELETE)],
    "cluster: describe": [_cluster(_DESCRIBE)],
    "cluster: alter": [_cluster(_ALTER)],
    "cluster: describe configs": [_cluster(_DESCRIBE_CONFIGS)],
    "cluster: alter configs": [_cluster(_ALTER_CONFIGS)],
    "everything": [_on("*", 2), _cluster(2), _on("*", 2, kind=3)],
}


class Scene:
    """One client and the existing topics, which are made anew if a request has removed them."""

    def __init__(self, peer: AclPeer) -> None:
        self._peer = peer
        self.client = peer.clients["ann", "127.0.0.1"]
        self.ids: dict[str, uuid.UUID] = {}
        self.restore()

    def restore(self) -> None:
        """Bring the topics to what they are at the start."""
        answer = self._peer.operator(MetadataRequest, 12, topics=None)
        there = {row["name"]: row["topic_id"] for row in answer["topics"]}
        rows = [{"name": name} for name in there if name not in (_THERE, _OTHER)]
        if rows:
            self._peer.operator(DeleteTopicsRequest, 6, topics=rows, timeout_ms=10_000)
        rows = [
            {"name": name, "num_partitions": 1, "replication_factor": 1}
            for name in (_THERE, _OTHER)
            if name not in there
        ]
        if rows:
            self._peer.operator(CreateTopicsRequest, 7, topics=rows, timeout_ms=10_000)
        if rows or len(there) > 2:
            time.sleep(_SETTLE)
            self.restore()
        else:
            self.ids = there

    def requests(self) -> Iterator[tuple[str, str, Any]]:
        """The name of a request, the field of the answer's rows, and the answer."""
        client = self.client
        there = self.ids[_THERE]

        def metadata(version: int, topics: Any, **asked: bool) -> Any:
            return client(MetadataRequest, version, topics=topics, allow_auto_topic_creation=False, **asked)

        by_name = [{"name": name} for name in (_THERE, _GONE, _BAD)]
        by_id = [{"name": None, "topic_id": found} for found in (there, _UNKNOWN)]
        yield "metadata all", "topics", metadata(13, None, include_topic_authorized_operations=True)
        yield "metadata names", "topics", metadata(13, by_name, include_topic_authorized_operations=True)
        yield "metadata names 1", "topics", metadata(1, by_name)
        yield "metadata names 8", "topics", metadata(8, by_name, include_cluster_authorized_operations=True)
        yield "metadata ids", "topics", metadata(12, by_id, include_topic_authorized_operations=True)
        yield "partitions all", "topics", client(DescribeTopicPartitionsRequest, 0, topics=[])
        yield "partitions names", "topics", client(DescribeTopicPartitionsRequest, 0, topics=by_name)
        yield "cluster", "", client(DescribeClusterRequest, 1, include_cluster_authorized_operations=True)
        yield (
            "config resources",
            "config_resources",
            client(ListConfigResourcesRequest, 1, resource_types=[2]),
        )
        yield "groups", "groups", client(ListGroupsRequest, 5)
        yield "group", "groups", client(DescribeGroupsRequest, 6, groups=["group"])

        def created(name: str, version: int, **asked: bool) -> Any:
            rows = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
            return client(CreateTopicsRequest, version, topics=rows, timeout_ms=10_000, **asked)

        for name in (_THERE, _NEW, _BAD, "__cluster_metadata"):
            yield f"create {name}, validated", "topics", created(name, 7, validate_only=True)
        for version in (4, 7):
            yield f"create {_NEW} {version}", "topics", created(_NEW, version)

        def deleted(**row: Any) -> Any:
            return client(DeleteTopicsRequest, 6, topics=[row], timeout_ms=10_000)

        yield "delete gone", "responses", deleted(name=_GONE)
        yield "delete name", "responses", deleted(name=_THERE)
        yield "delete id", "responses", deleted(name=None, topic_id=self.ids[_THERE])
        yield "delete unknown id", "responses", deleted(name=None, topic_id=_UNKNOWN)
        yield "delete name with id", "responses", deleted(name=_THERE, topic_id=self.ids[_THERE])
        rows = [{"name": _THERE}, {"name": None, "topic_id": self.ids[_THERE]}]
        yield (
            "delete name and id",
            "responses",
            client(DeleteTopicsRequest, 6, topics=rows, timeout_ms=10_000),
        )
        yield (
            "delete names 3",
            "responses",
            client(DeleteTopicsRequest, 3, topic_names=[_THERE, _GONE], timeout_ms=10_000),
        )
        rows = [{"name": name, "count": 2, "assignments": None} for name in (_THERE, _GONE)]
        answer = client(CreatePartitionsRequest, 3, topics=rows, timeout_ms=10_000, validate_only=True)
        yield "create partitions", "results", answer

        resources = [(2, _THERE), (2, _GONE), (2, _BAD), (4, "1")]
        for kind, name in resources:
            row = {"resource_type": kind, "resource_name": name}
            answer = client(
                DescribeConfigsRequest, 4, resources=[row | {"configuration_keys": ["retention.ms"]}]
            )
            yield f"configs {kind} {name}", "results", answer
            key = "retention.ms" if kind == 2 else "log.retention.ms"
            config = {"name": key, "config_operation": 0, "value": "60000"}
            answer = client(
                IncrementalAlterConfigsRequest, 1, resources=[row | {"configs": [config]}], validate_only=True
            )
            yield f"alter {kind} {name}", "responses", answer
            config = {"name": key, "value": "60000"}
            answer = client(
                AlterConfigsRequest, 2, resources=[row | {"configs": [config]}], validate_only=True
            )
            yield f"replace {kind} {name}", "responses", answer

        none = filter_row(2, "nothing", 3, None, None, 1, 1)
        yield "describe acls", "", client(DescribeAclsRequest, 3, **none)
        yield "delete acls", "filter_results", client(DeleteAclsRequest, 3, filters=[none])
        names = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation")
        row = dict(zip(names, (2, "nothing", 3, "User:eve", "*", 3), strict=True)) | {"permission_type": 2}
        yield "create acls", "results", client(CreateAclsRequest, 3, creations=[row])

    def answers(self) -> dict[str, Any]:
        """What each request is answered, without what differs from run to run."""
        found: dict[str, Any] = {}
        for asked, rows, answer in self.requests():
            said = self._plain(answer)
            if rows:
                said["rows"] = sorted((self._plain(row) for row in answer[rows]), key=json.dumps)
            found[asked] = said
            if asked.startswith(("create", "delete")):
                time.sleep(_SETTLE)
                self.restore()
        return found

    def _plain(self, row: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {key: row[key] for key in _KEPT if key in row}
        if "topic_id" in found:
            known = {
                self.ids[_THERE]: _THERE,
                self.ids[_OTHER]: _OTHER,
                _UNKNOWN: "unknown",
                _ZERO: "",
                None: "",
            }
            found["topic_id"] = known.get(found["topic_id"], "new")
        if found.get("error_message"):
            found["error_message"] = _REQUEST.sub("REQUEST", found["error_message"])
        if "configs" in row:
            found["configs"] = len(row["configs"] or ())
        if "authorized_operations" in row:
            operations = row["authorized_operations"]
            found["operations"] = None if operations is None else bits_of(operations)
        return found


def main(address: str) -> None:
    peer = AclPeer(address)
    peer.delete_all()
    scene = Scene(peer)
    found: dict[str, dict[str, Any]] = {}
    for name, bindings in _SCENES.items():
        peer.delete_all()
        peer.create(bindings)
        peer.settle(set(bindings))
        found[name] = {"acls": bindings, "answers": scene.answers()}
    lines = []
    for name, case in found.items():
        answers = ",\n".join(
            f"{json.dumps(asked)}: {json.dumps(said)}" for asked, said in case["answers"].items()
        )
        lines.append(
            f'{json.dumps(name)}: {{"acls": {json.dumps(case["acls"])}, "answers": {{\n{answers}\n}}}}'
        )
    _OUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
