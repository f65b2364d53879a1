"""The table of rights: which action each operation of each transport asks of gates, and which of the rules.

tests/servers/test_rights.py holds the servers and docs/how-to/secure.md to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from broker_core.access.authorization import RULES_OF

__all__ = ["RIGHTS", "Right", "asked_by", "enough", "rights_before_a_cluster", "rights_table"]


class Right(NamedTuple):
    """What some operations ask, one after the other; ``asks`` is empty of those that every role may ask.

    ``gates`` are asked the same, unless it is given. ``masks`` says what plugins that hide topics do to them.
    """

    transport: str
    operations: tuple[str, ...]
    asks: tuple[str, ...] = ()
    masks: str = "no"
    gates: str | None = None
    note: str = ""
    #: Whether rules allow it to nobody: a role of ``authorization.super_roles`` is needed.
    is_super: bool = False

    @property
    def rules(self) -> str:
        """What the rules are asked, in words."""
        if self.is_super:
            return "super roles alone"
        return ", then ".join(" or ".join(f"`{each}`" for each in RULES_OF[action]) for action in self.asks)


_HIDDEN: Final = "a hidden topic does not exist"
_TOPIC: Final = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
_CLUSTER: Final = "Kafka, before a cluster"
_SCHEMA: Final = "/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema"

#: Operations of HTTP are those of the OpenAPI document by their id, and others by method and path.
RIGHTS: Final = (
    Right("Pulsar", ("CONNECT", "PING")),
    Right("Pulsar", ("GET_TOPICS_OF_NAMESPACE", "WATCH_TOPIC_LIST"), ("list",), "yes"),
    Right("Pulsar", ("PARTITIONED_METADATA",), ("describe",), _HIDDEN),
    Right("Pulsar", ("LOOKUP",), ("lookup",), _HIDDEN),
    Right("Pulsar", ("GET_SCHEMA",), ("schema",), _HIDDEN),
    Right("Pulsar", ("GET_OR_CREATE_SCHEMA",), ("put_schema",), _HIDDEN),
    Right("HTTP `/v1`", ("openapi",), note="without credentials, unless `http.protect` is on"),
    Right("HTTP `/v1`", ("listScreens", "showAsker")),
    Right(
        "HTTP `/v1`",
        ("listTopics", "showNamespace", "listProperties", "listPropertyValues"),
        ("list",),
        "yes",
    ),
    Right("HTTP `/v1`", ("listNamespaces",), ("list",), note="shows the namespaces that the client may list"),
    Right("HTTP `/v1`", ("showTopic", "showTopicById", "showTopicConfigs"), ("list",), _HIDDEN),
    Right("HTTP `/v1`", ("listChanges",), ("list",), "409 where masks or rules hide topics"),
    Right("HTTP `/v1`", ("showTopicHistory",), ("list",), _HIDDEN),
    Right(
        "HTTP `/v1`",
        ("putTopic", "patchTopic"),
        ("admin",),
        note="the answer has what is known of the topic for clients with `list`",
    ),
    Right("HTTP `/v1`", ("deleteTopic", "importTopics"), ("admin",)),
    Right("HTTP `/v1`", ("deleteTopicById",), ("admin",), _HIDDEN),
    Right("HTTP `/v1`", ("explainListing",), ("admin", "list"), "yes"),
    Right(
        "HTTP `/v1`", ("whyListed",), ("admin",), "yes", note="and `list` where it is asked as another client"
    ),
    Right("HTTP `/v1`", ("listHeldListings",), ("admin",), note="shows such namespaces"),
    Right("HTTP `/v1`", ("acceptHeldListings",), ("admin",)),
    Right(
        "HTTP `/v1`",
        (
            "listClients",
            "showServerPlugins",
            "showServerMetrics",
            "showServerPermits",
            "showServerCaches",
            "showServerCheck",
            "showServerHistory",
        ),
        ("monitor",),
        gates="no",
        note="in all namespaces",
    ),
    Right(
        "HTTP `/v1`",
        ("showServerQuestions", "showServerWatchers"),
        ("monitor",),
        gates="`list`",
        note="in all namespaces",
    ),
    Right(
        "HTTP `/v1`",
        ("disconnectClients",),
        ("admin",),
        gates="no",
        note="in all namespaces; over the operator's socket alone where there are no rules",
    ),
    Right(
        "HTTP `/v1`",
        (
            "listKafkaUsers",
            "showKafkaUser",
            "putKafkaUser",
            "deleteKafkaUser",
            "listKafkaAcls",
            "createKafkaAcls",
            "deleteKafkaAcls",
        ),
        gates="no",
        note="404 if clients are not authenticated",
        is_super=True,
    ),
    Right(
        "HTTP `/admin/v2`",
        (
            "GET /admin/v2/namespaces/{tenant}/{namespace}/topics",
            "GET /admin/v2/{domain}/{tenant}/{namespace}",
            "GET /admin/v2/{domain}/{tenant}/{namespace}/partitioned",
        ),
        ("list",),
        "yes",
    ),
    Right(
        "HTTP `/admin/v2`",
        ("GET /admin/v2/tenants", "GET /admin/v2/namespaces/{tenant}"),
        ("list",),
        note="shows the namespaces that the client may list",
    ),
    Right("HTTP `/admin/v2`", ("GET /admin/v2/namespaces/{tenant}/{namespace}",), ("list",)),
    Right(
        "HTTP `/admin/v2`",
        (f"GET {_TOPIC}/partitions",),
        ("describe",),
        _HIDDEN,
        note="has properties with `list` alone",
    ),
    Right("HTTP `/admin/v2`", (f"GET {_TOPIC}/properties",), ("list",), _HIDDEN, gates="`describe`"),
    Right("HTTP `/admin/v2`", (f"GET {_SCHEMA}", f"GET {_SCHEMA}/{{version}}"), ("schema",), _HIDDEN),
    Right(
        "HTTP `/lookup/v2`",
        ("GET /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}",),
        ("lookup",),
        _HIDDEN,
    ),
    Right(
        "HTTP `/admin/v2`",
        (
            f"PUT {_TOPIC}",
            f"DELETE {_TOPIC}",
            f"PUT {_TOPIC}/partitions",
            f"POST {_TOPIC}/partitions",
            f"DELETE {_TOPIC}/partitions",
            f"PUT {_TOPIC}/properties",
            f"DELETE {_TOPIC}/properties",
            "PUT /admin/v2/namespaces/{tenant}/{namespace}",
            "DELETE /admin/v2/namespaces/{tenant}/{namespace}",
        ),
        ("admin",),
    ),
    Right(
        "HTTP pages",
        ("GET /questions",),
        ("monitor",),
        gates="`list`",
        note="in some namespace; shows such namespaces",
    ),
    Right("HTTP pages", ("GET /plugins",), ("monitor",), gates="no", note="in all namespaces"),
    Right(
        "HTTP pages",
        ("GET /metrics",),
        ("monitor",),
        gates="no",
        note="in all namespaces; open unless `http.protect` is on",
    ),
    Right(
        "HTTP pages", ("GET /-/live", "GET /-/ready"), note="without credentials, unless `http.protect` is on"
    ),
    Right(
        "Kafka",
        ("ApiVersions", "SaslHandshake", "SaslAuthenticate"),
        note="ApiVersions without credentials",
    ),
    Right(
        "Kafka",
        (
            "DescribeCluster",
            "ListGroups",
            "DescribeGroups",
            "ConsumerGroupDescribe",
            "ListTransactions",
            "DescribeTransactions",
            "ListPartitionReassignments",
            "OffsetFetch",
            "Produce",
            "Fetch",
            "FindCoordinator",
            "InitProducerId",
        ),
        note="and DescribeConfigs and ListConfigResources of nodes; the last four are refused to all",
    ),
    Right(
        "Kafka",
        ("ListTopics", "ListConfigResources", "DescribeLogDirs"),
        ("list",),
        "yes",
        note="and Metadata and DescribeTopicPartitions of all topics",
    ),
    Right(
        "Kafka",
        ("Metadata", "DescribeTopicPartitions", "ListOffsets", "DescribeProducers"),
        ("describe",),
        _HIDDEN,
        note="of topics that are named; and DescribeLogDirs",
    ),
    Right("Kafka", ("DescribeConfigs",), ("list",), _HIDDEN, gates="`describe`", note="of topics"),
    Right("Kafka", ("CreateTopics",), ("admin",), note="the answer has configs for clients with `list`"),
    Right("Kafka", ("CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs"), ("admin",), _HIDDEN),
    Right("Kafka", ("DeleteTopics",), ("admin",), _HIDDEN, gates="`describe`, then `admin`"),
    Right("Kafka", ("DescribeAcls", "CreateAcls", "DeleteAcls"), ("admin",)),
    Right(
        _CLUSTER,
        ("ApiVersions", "SaslHandshake", "SaslAuthenticate", "DescribeCluster"),
        note="ApiVersions without credentials",
    ),
    Right(
        _CLUSTER,
        ("Produce", "Fetch", "InitProducerId", "JoinGroup", "ConsumerGroupHeartbeat"),
        note="refused to all",
    ),
    Right(_CLUSTER, ("FindCoordinator", "ListGroups", "ListTransactions"), ("list",)),
    Right(
        _CLUSTER,
        (
            "ListTopics",
            "DescribeGroups",
            "ConsumerGroupDescribe",
            "OffsetFetch",
            "DescribeTransactions",
            "ListPartitionReassignments",
            "DescribeLogDirs",
            "ListConfigResources",
        ),
        ("list",),
        "yes",
        note="and Metadata of all topics, and DescribeConfigs of nodes",
    ),
    Right(
        _CLUSTER,
        ("Metadata", "DescribeTopicPartitions", "ListOffsets", "DescribeProducers"),
        ("describe",),
        _HIDDEN,
        note="of topics that are named; of all, DescribeTopicPartitions asks `list`",
    ),
    Right(
        _CLUSTER,
        ("DescribeConfigs",),
        ("list",),
        _HIDDEN,
        gates="`list`, then `describe`",
        note="of topics",
    ),
    Right(_CLUSTER, ("CreateTopics",), ("admin",), note="the answer has configs for clients with `list`"),
    Right(
        _CLUSTER,
        (
            "CreatePartitions",
            "AlterConfigs",
            "IncrementalAlterConfigs",
            "DeleteTopics",
            "AlterPartitionReassignments",
            "OffsetCommit",
            "OffsetDelete",
        ),
        ("admin",),
        _HIDDEN,
        gates="`admin`, then `describe`",
        note="configs of nodes, and offsets of topics by their ids: in the whole namespace",
    ),
    Right(
        _CLUSTER,
        (
            "DescribeAcls",
            "CreateAcls",
            "DeleteAcls",
            "DescribeClientQuotas",
            "DescribeUserScramCredentials",
            "DeleteGroups",
            "LeaveGroup",
        ),
        ("admin",),
        note="in the whole namespace",
    ),
)


def asked_by(transport: str) -> dict[str, tuple[str, ...]]:
    """By operation what those of a transport ask; of HTTP all of it."""
    return {
        name: right.asks
        for right in RIGHTS
        if right.transport == transport or right.transport.startswith(f"{transport} ")
        for name in right.operations
    }


def enough(action: str) -> tuple[str, ...]:
    """The actions in a rule of which each is enough for one that is asked."""
    return (*RULES_OF[action], "admin") if action == "monitor" else RULES_OF[action]


def rights_before_a_cluster() -> Iterator[str]:
    """The lines of the table in Markdown, as docs/how-to/kafka-gateway.md has it."""
    yield "| APIs | a rule with |"
    yield "|---|---|"
    for right in RIGHTS:
        if right.transport == _CLUSTER:
            note = f" ({right.note})" if right.note else ""
            yield f"| {', '.join(right.operations)}{note} | {right.rules or 'none needed'} |"


def rights_table() -> Iterator[str]:
    """The lines of the table in Markdown, as docs/how-to/secure.md has it."""
    yield "| transport | operation | rules | gates | masks |"
    yield "|---|---|---|---|---|"
    for right in RIGHTS:
        names = ", ".join(f"`{name}`" if "/" in name else name for name in right.operations)
        note = f" ({right.note})" if right.note else ""
        gates = right.gates or (", then ".join(f"`{action}`" for action in right.asks) or "no")
        yield f"| {right.transport} | {names}{note} | {right.rules or 'any role'} | {gates} | {right.masks} |"
