"""Record what a real Kafka broker with its authorizer decides, and what its APIs of ACLs answer.

``python -m tests.interop.record_acls HOST:PORT HOST:PORT`` writes ``tests/vectors/kafka-4.3.1-acls.jsonl`` and
``kafka-4.3.1-acl-filters.json``. It needs kafka-python 3 and two brokers, the second one with
``allow.everyone.if.no.acl.found``. HOST:PORT is a listener PLAINTEXT; the controller of the broker listens on the next
port, and a listener SASL_PLAINTEXT with the mechanism PLAIN at PORT+5. The other properties of both::

    authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
    super.users=User:ANONYMOUS;User:root
    listener.name.sasl.sasl.enabled.mechanisms=PLAIN
    listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
        user_ann="pw" user_bob="pw" user_root="pw";
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from kafka.protocol.admin import (
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteRecordsRequest,
    DescribeAclsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest

from tests.interop.kafka_raw import RawKafka

__all__ = ["AclPeer", "Binding"]

_VECTORS: Final = Path(__file__).resolve().parents[1] / "vectors"
_CASES: Final = 300
_FILTERS: Final = 200
#: Those that there are, and one that there is not.
TOPICS: Final = ("a", "ab", "abc", "abcd", "b", "ba", "A", "a.b")
MISSING: Final = "abd"
GROUPS: Final = ("a", "ab", "g")
USERS: Final = ("ann", "bob", "root")
HOSTS: Final = ("127.0.0.1", "127.0.0.2")
#: Topic, group and cluster.
_TOPIC, _GROUP, _CLUSTER = 2, 3, 4
_LITERAL, _PREFIXED = 3, 4
_DENY, _ALLOW = 2, 3

#: Type, name, pattern, principal, host, operation, permission.
Binding = tuple[int, str, int, str, str, int, int]
_FIELDS: Final = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)


class AclPeer:
    """A broker, and its clients: each user from each host."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = address
        self.operator = RawKafka(address)
        self.controller = RawKafka(f"{host}:{int(port) + 1}")
        sasl = f"{host}:{int(port) + 5}"
        self.clients = {(user, source): RawKafka(sasl, user, source) for user in USERS for source in HOSTS}

    def create(self, bindings: Sequence[Binding]) -> list[dict[str, Any]]:
        rows = [_creation(row) for row in bindings]
        found: list[dict[str, Any]] = self.operator(CreateAclsRequest, 3, creations=rows)["results"]
        return found

    def ask(self, request_type: type[Any], **fields: object) -> dict[str, Any] | None:
        """The answer to the operator, or ``None`` if the broker hangs up."""
        try:
            return self.operator(request_type, 3, **fields)
        except ConnectionError:
            self.operator.close()
            self.operator = RawKafka(self._address)
            return None

    def delete_all(self) -> None:
        self.operator(DeleteAclsRequest, 3, filters=[filter_row(1, None, 1, None, None, 1, 1)])

    def settle(self, expected: set[Binding]) -> None:
        """Wait until the broker's authorizer and the controller's have exactly these ACLs."""
        for asked in (self.operator, self.controller):
            until = time.monotonic() + 30
            while set(described(asked, (1, None, 1, None, None, 1, 1))) != expected:
                assert time.monotonic() < until, "the ACLs do not come"
                time.sleep(0.002)


def _creation(binding: Binding) -> dict[str, Any]:
    row = dict(zip(_FIELDS, binding, strict=True))
    row["resource_pattern_type"] = row.pop("pattern_type")
    return row


def filter_row(
    kind: int,
    name: str | None,
    pattern: int,
    principal: str | None,
    host: str | None,
    operation: int,
    permission: int,
) -> dict[str, Any]:
    return {
        "resource_type_filter": kind,
        "resource_name_filter": name,
        "pattern_type_filter": pattern,
        "principal_filter": principal,
        "host_filter": host,
        "operation": operation,
        "permission_type": permission,
    }


def described(client: RawKafka, asked: tuple[Any, ...]) -> list[Binding]:
    """The bindings that the broker describes, in the order of the answer."""
    answer = client(DescribeAclsRequest, 3, **filter_row(*asked))
    assert answer["error_code"] == 0, answer
    return bindings_of(answer["resources"])


def bindings_of(resources: Iterable[dict[str, Any]]) -> list[Binding]:
    """The bindings of an answer that has them by resource."""
    resource_fields = ("resource_type", "resource_name", "pattern_type")
    return [
        (*(resource[name] for name in resource_fields), *(acl[name] for name in _FIELDS[3:]))
        for resource in resources
        for acl in resource["acls"]
    ]


def some_bindings(chosen: random.Random) -> list[Binding]:
    """One to ten ACLs, among them ones that are about no topic that is asked."""
    found: set[Binding] = set()
    for _ in range(chosen.choice((1, 1, 2, 3, 4, 6, 10))):
        kind = chosen.choices((_TOPIC, _GROUP, _CLUSTER), (8, 1, 1))[0]
        pattern = chosen.choice((_LITERAL, _LITERAL, _PREFIXED))
        if kind == _CLUSTER:
            name, pattern = "kafka-cluster", _LITERAL
        elif pattern == _LITERAL:
            name = chosen.choice(("*", *(TOPICS if kind == _TOPIC else GROUPS), MISSING))
        else:
            name = chosen.choice(("a", "ab", "abc", "A", "b", "a.", "*", "zz"))
        found.add(
            (
                kind,
                name,
                pattern,
                chosen.choices(
                    ("User:ann", "User:*", "User:bob", "User:root", "User:eve", "Group:ann"),
                    (8, 5, 3, 1, 1, 1),
                )[0],
                chosen.choices(("*", "127.0.0.1", "127.0.0.2", "10.0.0.1"), (6, 3, 2, 1))[0],
                chosen.choices(range(2, 13), (4, 3, 3, 2, 2, 2, 6, 1, 2, 2, 1))[0],
                chosen.choices((_DENY, _ALLOW), (1, 2))[0],
            )
        )
    return sorted(found)


def decisions(client: RawKafka) -> dict[str, Any]:
    """What a client may do, by the answers to it.

    ``listed``: the topics of a listing with the bits of their operations; ``denied``: those that are denied by name;
    ``cluster``: the bits of the cluster, 0 without DESCRIBE; ``groups``: those that may be described; a key ``opN``:
    the topics for which the operation N is allowed, as an API says that needs no other.
    """
    found: dict[str, Any] = {}
    answer = client(MetadataRequest, 12, topics=None, include_topic_authorized_operations=True)
    found["listed"] = {row["name"]: bits_of(row["authorized_operations"]) for row in answer["topics"]}
    names = (*TOPICS, MISSING)
    answer = client(MetadataRequest, 12, topics=[{"name": name} for name in names])
    found["denied"] = sorted(row["name"] for row in answer["topics"] if row["error_code"] == 29)
    answer = client(DescribeClusterRequest, 1, include_cluster_authorized_operations=True)
    found["cluster"] = bits_of(answer["authorized_operations"])
    answer = client(DescribeGroupsRequest, 6, groups=list(GROUPS))
    found["groups"] = sorted(row["group_id"] for row in answer["groups"] if row["error_code"] != 30)
    for operation, rows in (
        (3, _read(client)),
        (4, _written(client)),
        (5, _created(client)),
        (6, _records_deleted(client)),
        (7, _partitions(client)),
        (10, _configs(client)),
        (11, _altered(client)),
    ):
        found[f"op{operation}"] = sorted(name for name, code in rows.items() if code != 29)
    return found


def bits_of(operations: Iterable[int]) -> int:
    return sum(1 << int(operation) for operation in operations)


def _read(client: RawKafka) -> dict[str, int]:
    """A fetch of a partition that no topic has."""
    rows = [{"topic": name, "partitions": [{"partition": 99}]} for name in TOPICS]
    answer = client(FetchRequest, 12, max_wait_ms=0, min_bytes=0, topics=rows)
    return {row["topic"]: row["partitions"][0]["error_code"] for row in answer["responses"]}


def _written(client: RawKafka) -> dict[str, int]:
    rows = [{"name": name, "partition_data": [{"index": 99, "records": None}]} for name in TOPICS]
    answer = client(ProduceRequest, 12, acks=1, timeout_ms=1000, topic_data=rows)
    return {row["name"]: row["partition_responses"][0]["error_code"] for row in answer["responses"]}


def _created(client: RawKafka) -> dict[str, int]:
    rows = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in TOPICS]
    answer = client(CreateTopicsRequest, 7, topics=rows, timeout_ms=10_000, validate_only=True)
    return {row["name"]: row["error_code"] for row in answer["topics"]}


def _records_deleted(client: RawKafka) -> dict[str, int]:
    rows = [{"name": name, "partitions": [{"partition_index": 99, "offset": 0}]} for name in TOPICS]
    answer = client(DeleteRecordsRequest, 2, topics=rows, timeout_ms=10_000)
    return {row["name"]: row["partitions"][0]["error_code"] for row in answer["topics"]}


def _partitions(client: RawKafka) -> dict[str, int]:
    rows = [{"name": name, "count": 1, "assignments": None} for name in TOPICS]
    answer = client(CreatePartitionsRequest, 3, topics=rows, timeout_ms=10_000, validate_only=True)
    return {row["name"]: row["error_code"] for row in answer["results"]}


def _configs(client: RawKafka) -> dict[str, int]:
    rows = [
        {"resource_type": _TOPIC, "resource_name": name, "configuration_keys": ["retention.ms"]}
        for name in TOPICS
    ]
    answer = client(DescribeConfigsRequest, 4, resources=rows)
    return {row["resource_name"]: row["error_code"] for row in answer["results"]}


def _altered(client: RawKafka) -> dict[str, int]:
    change = [{"name": "retention.ms", "config_operation": 0, "value": "1000"}]
    rows = [{"resource_type": _TOPIC, "resource_name": name, "configs": change} for name in TOPICS]
    answer = client(IncrementalAlterConfigsRequest, 1, resources=rows, validate_only=True)
    return {row["resource_name"]: row["error_code"] for row in answer["responses"]}


def decision_table(peer: AclPeer, everyone: bool, seed: int) -> list[dict[str, Any]]:
    """Random cases: ACLs, and what two clients may do."""
    chosen = random.Random(seed)
    cases = []
    for _ in range(_CASES):
        bindings = some_bindings(chosen)
        peer.delete_all()
        assert all(row["error_code"] == 0 for row in peer.create(bindings))
        peer.settle(set(bindings))
        askers = chosen.sample(sorted(peer.clients), 2)
        if chosen.random() < 0.7 and not any(user == "ann" for user, _ in askers):
            askers[0] = ("ann", chosen.choice(HOSTS))
        asks = [
            {"principal": f"User:{user}", "host": host} | decisions(peer.clients[user, host])
            for user, host in askers
        ]
        cases.append({"everyone": everyone, "acls": bindings, "asks": asks})
    return cases


def filter_cases(peer: AclPeer) -> dict[str, Any]:
    """Filters over one set of ACLs, what they find and delete, and what is refused."""
    chosen = random.Random(7)
    stored = sorted({row for _ in range(25) for row in some_bindings(chosen)})
    peer.delete_all()
    peer.create(stored)
    peer.settle(set(stored))
    found: list[dict[str, Any]] = []
    deleted: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for asked in _some_filters(chosen):
        answer = peer.ask(DescribeAclsRequest, **filter_row(*asked))
        row = {"filter": asked, "error": answer and [answer["error_code"], answer["error_message"]]}
        found.append(row | ({"found": sorted(bindings_of(answer["resources"]))} if answer else {}))
    for asked in _some_filters(chosen)[:80]:
        answer = peer.ask(DeleteAclsRequest, filters=[filter_row(*asked)])
        if answer is None:
            deleted.append({"filter": asked, "error": None})
            continue
        result = answer["filter_results"][0]
        gone = sorted(tuple(acl[name] for name in _FIELDS) for acl in result["matching_acls"])
        deleted.append(
            {"filter": asked, "error": [result["error_code"], result["error_message"]], "deleted": gone}
        )
        if gone:
            peer.settle(set(stored) - set(gone))
            peer.create(gone)
            peer.settle(set(stored))
    peer.delete_all()
    peer.settle(set())
    for binding in _odd_bindings():
        answer = peer.ask(CreateAclsRequest, creations=[_creation(binding)])
        said = answer and answer["results"][0]
        refused.append({"acl": binding, "error": said and [said["error_code"], said["error_message"]]})
        peer.delete_all()
    return {"acls": stored, "describe": found, "delete": deleted, "create": refused}


def _some_filters(chosen: random.Random) -> list[tuple[Any, ...]]:
    everything = (1, None, 1, None, None, 1, 1)
    odd = [
        everything,
        (0, None, 1, None, None, 1, 1),
        (1, None, 0, None, None, 1, 1),
        (1, None, 1, None, None, 0, 1),
        (1, None, 1, None, None, 1, 0),
        (1, "", 1, None, None, 1, 1),
        (1, None, 1, "", None, 1, 1),
        (1, None, 1, None, "", 1, 1),
        (1, None, 1, "ann", None, 1, 1),
        (2, "*", 2, None, None, 1, 1),
        (2, "*", 3, None, None, 1, 1),
        (2, "*", 4, None, None, 1, 1),
        (2, None, 2, None, None, 1, 1),
        (1, "abc", 2, None, None, 1, 1),
        (4, "kafka", 2, None, None, 1, 1),
        (99, None, 1, None, None, 1, 1),
        (1, None, 99, None, None, 1, 1),
        (1, None, 1, None, None, 99, 1),
        (1, None, 1, None, None, 1, 99),
    ]
    some = [
        (
            chosen.choice((1, 2, 2, 2, 3, 4)),
            chosen.choice((None, "a", "ab", "abc", "abcd", "*", "zzz", "kafka-cluster", "Ab")),
            chosen.choice((1, 2, 2, 3, 4)),
            chosen.choice((None, None, None, "User:ann", "User:*", "User:eve", "User:nobody")),
            chosen.choice((None, None, None, "*", "127.0.0.1", "1.1.1.1")),
            chosen.choice((1, 1, 1, 2, 3, 8, 10)),
            chosen.choice((1, 1, 2, 3)),
        )
        for _ in range(_FILTERS)
    ]
    return odd + some


def _odd_bindings() -> list[Binding]:
    plain: Binding = (_TOPIC, "a", _LITERAL, "User:ann", "*", 8, _ALLOW)
    found: list[Binding] = [plain]
    for place, values in enumerate(
        (
            (0, 1, 3, 4, 5, 6, 7, 8, 99),
            ("", "*", "x" * 249, "x" * 250, "a b", "é", "kafka-cluster", "."),
            (0, 1, 2, 4, 5, 99),
            ("", "ann", "User:", ":ann", "User:a:b", "user:ann", "Group:ann", "User:*", "a b:c", "User: ann"),
            ("", "localhost", "10.0.0.0/8", "::1", "127.0.0.1", "x y"),
            (0, 1, 2, 9, 12, 13, 14, 15, 16, 99),
            (0, 1, 2, 4, 99),
        )
    ):
        for value in values:
            row = list(plain)
            row[place] = value
            found.append(tuple(row))  # type: ignore[arg-type]
    found += [
        (_CLUSTER, "kafka-cluster", _LITERAL, "User:ann", "*", 7, _ALLOW),
        (_CLUSTER, "kafka-cluster", _PREFIXED, "User:ann", "*", 7, _ALLOW),
        (_CLUSTER, "kafka", _PREFIXED, "User:ann", "*", 7, _ALLOW),
        (_CLUSTER, "*", _LITERAL, "User:ann", "*", 7, _ALLOW),
        (_CLUSTER, "kafka-cluster", _LITERAL, "User:ann", "*", 3, _ALLOW),
        (_TOPIC, "*", _PREFIXED, "User:ann", "*", 3, _ALLOW),
        (_TOPIC, "a", _LITERAL, "User:ann", "*", 9, _ALLOW),
        (6, "token", _LITERAL, "User:ann", "*", 8, _ALLOW),
        (7, "User:ann", _LITERAL, "User:ann", "*", 13, _ALLOW),
        (5, "tx", _PREFIXED, "User:ann", "*", 15, _ALLOW),
    ]
    return found


def main(addresses: Sequence[str]) -> None:
    table = []
    for number, (address, everyone) in enumerate(zip(addresses, (False, True), strict=True)):
        peer = AclPeer(address)
        rows = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in TOPICS]
        peer.operator(CreateTopicsRequest, 7, topics=rows, timeout_ms=10_000)
        table += decision_table(peer, everyone, number)
        if not everyone:
            found = filter_cases(peer)
            (_VECTORS / "kafka-4.3.1-acl-filters.json").write_text(
                "{\n"
                + ",\n".join(
                    f'"{part}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]"
                    for part, rows in found.items()
                )
                + "\n}\n",
                encoding="utf-8",
            )
    lines = (json.dumps(case, separators=(",", ":")) for case in table)
    (_VECTORS / "kafka-4.3.1-acls.jsonl").write_text(
        "\n".join(itertools.chain(lines, [""])), encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
