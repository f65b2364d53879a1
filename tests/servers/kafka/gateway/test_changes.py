from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs

from broker_core.client.kafka import (
    AdminClient,
    AlterConfigOp,
    ConfigResource,
    InvalidTopicException,
    NewTopic,
    TopicExistsException,
    TopicIdCollection,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
)
from broker_core.names import PERSISTENT, TopicName
from broker_core.service.audit import AUDIT_LOGGER
from broker_core.settings import AuthenticationSettings, AuthorizationRule, AuthorizationSettings
from broker_core.wire.kafka import (
    ALTER_CONFIGS,
    ALTER_PARTITION_REASSIGNMENTS,
    API_VERSIONS,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_TOPICS,
    DESCRIBE_ACLS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    ZERO_ID,
    Api,
    ErrorCode,
    Fields,
)
from tests.support.kafka_gateway import NAMESPACE, Cluster, Secrets, address_of, gateway
from tests.support.kafka_serving import RawKafkaClient, ask_once, raw_client
from tests.support.kafka_topics import changing
from tests.support.scripted_kafka import ScriptedKafka

_TOPIC: Final[Fields] = {
    "name": "t",
    "num_partitions": 1,
    "replication_factor": 1,
    "assignments": [],
    "configs": [],
}
_RESOURCE: Final[Fields] = {"resource_type": 2, "resource_name": "t", "configs": []}
_FILTER: Final[Fields] = {
    "resource_type_filter": 2,
    "pattern_type_filter": 1,
    "operation": 1,
    "permission_type": 1,
}
_ACL: Final[Fields] = {"resource_type": 2, "resource_name": "t", "principal": "User:u", "host": "*"}
_MOVED: Final[Fields] = {
    "name": "t",
    "partitions": [{"partition_index": index, "replicas": None} for index in (0, 4)],
}
#: What the controller decides, and the array of the answer.
_DECIDED: Final[list[tuple[Api, int, Fields, str]]] = [
    (CREATE_TOPICS, 7, {"topics": [_TOPIC]}, "topics"),
    (CREATE_TOPICS, 2, {"topics": [_TOPIC]}, "topics"),
    (CREATE_PARTITIONS, 3, {"topics": [{"name": "t", "count": 2, "assignments": None}]}, "results"),
    (DELETE_TOPICS, 6, {"topics": [{"name": "t", "topic_id": ZERO_ID}]}, "responses"),
    (DELETE_TOPICS, 3, {"topic_names": ["t"]}, "responses"),
    (ALTER_CONFIGS, 2, {"resources": [_RESOURCE]}, "responses"),
    (INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [_RESOURCE]}, "responses"),
    (ALTER_PARTITION_REASSIGNMENTS, 0, {"topics": [_MOVED]}, "responses"),
    (CREATE_ACLS, 3, {"creations": [{**_ACL, "operation": 3, "permission_type": 3}]}, "results"),
    (DELETE_ACLS, 3, {"filters": [_FILTER]}, "filter_results"),
    (LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}, ""),
]


async def test_changes_are_made_at_the_cluster(through: AdminClient, cluster: Cluster) -> None:
    (await through.create_topics([NewTopic("new", 2)])).all()
    (await through.create_partitions({"new": 4})).all()
    new = ConfigResource.topic("new")
    (await through.incremental_alter_configs({new: [AlterConfigOp("retention.ms", "1000")]})).all()
    assert len((await cluster.describe_topics(["new"]))["new"].partitions) == 4
    assert (await cluster.describe_configs([new]))[new]["retention.ms"].value == "1000"
    (await through.delete_topics(["new"])).all()
    assert "new" not in (await cluster.list_topics()).names()


async def test_a_hidden_topic_is_not_changed(through: AdminClient, cluster: Cluster) -> None:
    secret = ConfigResource.topic("secret.keys")
    with pytest.raises(TopicExistsException):
        (await through.create_topics([NewTopic("secret.keys", 9)])).all()
    with pytest.raises(InvalidTopicException) as failure:  # Kafka takes `.` and `_` for one in names
        (await through.create_topics([NewTopic("secret_keys", 9)])).all()
    assert "collides with an existing topic" in str(failure.value)
    assert "secret.keys" not in str(failure.value)
    with pytest.raises(UnknownTopicOrPartitionException):
        (await through.create_partitions({"secret.keys": 9})).all()
    with pytest.raises(UnknownTopicOrPartitionException):
        (await through.incremental_alter_configs({secret: [AlterConfigOp("retention.ms", "1")]})).all()
    with pytest.raises(UnknownTopicOrPartitionException):
        (await through.delete_topics(["secret.keys"])).all()
    assert len((await cluster.describe_topics(["secret.keys"]))["secret.keys"].partitions) == 1


@pytest.mark.parametrize("masked", [True, False])
async def test_topics_are_deleted_by_their_ids_at_both_kinds_of_port(
    tmp_path: Path, cluster: Cluster, masked: bool
) -> None:
    made = ("first", "second", "third", "named")
    (await cluster.create_topics([NewTopic(name) for name in made])).all()
    found = await cluster.describe_topics([*made, "secret.keys"])
    ids = {name: found[name].topic_id for name in found}
    hidden = [{"topic_id": ids["secret.keys"]}] if masked else []
    plugins = {"secrets": Secrets()} if masked else None
    async with (
        gateway(tmp_path, cluster.address, plugins) as front,
        AdminClient(address_of(front), api_timeout=10) as through,
    ):
        (await through.delete_topics(TopicIdCollection([ids["first"]]))).all()
        node = (await through.describe_cluster()).nodes[0]
        host, _, port = address_of(front).rpartition(":")
        for address, name in (((node.host, node.port), "second"), ((host, int(port)), "third")):
            async with raw_client(address) as client:
                asked = {"topics": [{"topic_id": ids[name]}, {"name": "named"}, *hidden]}
                rows = (await client.ask(DELETE_TOPICS, 6, asked | {"timeout_ms": 9000}))["responses"]
            codes = {row["topic_id"]: row["error_code"] for row in rows if row["topic_id"] in ids.values()}
            assert codes[ids[name]] == 0
            if masked:
                assert codes[ids["secret.keys"]] == 100
        if not masked:
            (await through.delete_topics(TopicIdCollection([ids["secret.keys"]]))).all()
        gone = await through.delete_topics(TopicIdCollection([ids["first"]]))
        assert type(gone.errors[ids["first"]]) is UnknownTopicIdException
    left = {"mail", "orders", *(("secret.keys",) if masked else ())}
    assert {topic.name for topic in await cluster.list_topics()} == left


@pytest.mark.parametrize(("api", "version"), [(ALTER_CONFIGS, 2), (INCREMENTAL_ALTER_CONFIGS, 1)])
async def test_configs_of_a_node_are_changed_at_it(
    two_nodes: RawKafkaClient, nodes: list[ScriptedKafka], api: Api, version: int
) -> None:
    resources = [(4, "2"), (2, "b"), (8, "1"), (4, ""), (8, "2"), (4, "99"), (4, "1")]
    rows = [{"resource_type": kind, "resource_name": name, "configs": []} for kind, name in resources]
    asked: Fields = {"resources": rows, "validate_only": False}

    async def outcomes() -> list[tuple[int, str, int]]:
        found = (await two_nodes.ask(api, version, asked))["responses"]
        return [(row["resource_type"], row["resource_name"], row["error_code"]) for row in found]

    assert await outcomes() == [(*each, 42 if each == (4, "99") else 0) for each in resources]
    await nodes[1].stop()
    assert await outcomes() == [
        (*each, 42 if each == (4, "99") else 8 if each[1] == "2" else 0) for each in resources
    ]


async def test_a_topic_that_no_listing_could_have_is_not_made(
    through: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The node itself does not refuse them so, as no node of Kafka does.
    monkeypatch.setattr(
        "broker_core.servers.kafka.topics.new_topic.new_name",
        lambda local, namespace: TopicName(PERSISTENT, namespace, local),
    )
    names = ["orders-partition-7", "__change_events", "new"]
    made = await through.create_topics([NewTopic(name) for name in names])
    assert set(made.errors) == set(names[:2])
    assert [type(error) for error in made.errors.values()] == [InvalidTopicException] * 2
    assert "is that of a partition" in str(made.errors["orders-partition-7"])


@pytest.mark.parametrize("shows", [True, False])
async def test_what_a_topic_has_is_for_clients_that_may_list_it(
    tmp_path: Path, cluster: Cluster, shows: bool
) -> None:
    tables = changing(may_list=shows, namespace=NAMESPACE)
    async with gateway(tmp_path, cluster.address, tables=tables) as front:
        topic = {
            "name": "new",
            "num_partitions": 47,
            "replication_factor": -1,
            "assignments": [],
            "configs": [],
        }
        asked = {"topics": [topic], "timeout_ms": 9000, "validate_only": False}
        (made,) = (await ask_once(front, CREATE_TOPICS, 7, asked))["topics"]
        assert (made["error_code"], made["topic_config_error_code"]) == (0, 0 if shows else 29)
        assert made["num_partitions"] == (47 if shows else -1)
        assert bool(made["configs"]) is shows
        fewer = [{"name": "new", "count": 3, "assignments": None}]
        asked = {"topics": fewer, "timeout_ms": 9000, "validate_only": False}
        (refused,) = (await ask_once(front, CREATE_PARTITIONS, 3, asked))["results"]
        assert refused["error_code"] == 37
        assert ("47" in (refused["error_message"] or "")) is shows


@pytest.mark.parametrize(("asked", "code", "masked"), [(False, 41, False), (True, 7, False), (True, 7, True)])
async def test_without_a_controller_each_row_is_an_error_at_the_port_of_the_listener(
    tmp_path: Path, asked: bool, code: int, masked: bool
) -> None:
    # A node closes the connection when it is asked what it has no handler for.
    versions = {
        api: api.versions for api in (API_VERSIONS, METADATA, DESCRIBE_ACLS, *(row[0] for row in _DECIDED))
    }
    plugins = {"secrets": Secrets()} if masked else None
    async with ScriptedKafka(versions=versions) as node, gateway(tmp_path, node.address, plugins) as front:
        prefixed = {"resource_type": 2, "resource_name": "t", "pattern_type": 4}
        node.handlers[DESCRIBE_ACLS] = lambda _: {"resources": [prefixed]}
        await ask_once(front, METADATA, 12, {"topics": None})
        if not asked:
            await node.stop()
        for api, version, body, array in _DECIDED:
            if masked and api not in (CREATE_TOPICS, DELETE_ACLS):
                continue  # there is no such topic
            answer = await ask_once(front, api, version, body)
            (row,) = answer[array] if array else [answer]
            codes = {each["error_code"] for each in row.get("partitions") or [row]}
            assert codes == {code}, (api.name, answer)
            assert "127.0.0.1" not in str(answer)


async def test_a_change_that_fails_as_a_whole_has_an_error_and_an_audit_line_for_each_topic(
    tmp_path: Path, cluster: Cluster
) -> None:
    every = AuthorizationRule(roles=("anyone",), namespaces=(NAMESPACE,), actions=("*",))
    tables = {
        "authentication": AuthenticationSettings(anonymous_role="anyone"),
        "authorization": AuthorizationSettings(mode="rules", rules=(every,)),
    }
    names = ["a/b", "orders"]  # rules cannot be asked about a name that no topic can have
    topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in names]
    with capture_logs() as logs:
        async with gateway(tmp_path, cluster.address, tables=tables) as front:
            for api, version in ((OFFSET_COMMIT, 9), (OFFSET_DELETE, 0)):
                found = await ask_once(front, api, version, {"group_id": "g", "topics": topics})
                codes = {row["name"]: row["partitions"][0]["error_code"] for row in found["topics"]}
                assert codes == dict.fromkeys(names, ErrorCode.UNKNOWN_SERVER_ERROR)
    lines = [(line["action"], line["target"]) for line in logs if line.get("logger") == AUDIT_LOGGER]
    assert lines == 2 * [("alter_offsets", f"{PERSISTENT}://{NAMESPACE}/{name}") for name in names]
