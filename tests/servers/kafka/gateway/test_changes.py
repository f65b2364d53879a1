from __future__ import annotations

import pytest

from broker_core.client.kafka import (
    AdminClient,
    AlterConfigOp,
    ConfigResource,
    NewTopic,
    TopicExistsException,
    UnknownTopicOrPartitionException,
)
from tests.support.kafka_gateway import Cluster


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
    with pytest.raises(UnknownTopicOrPartitionException):
        (await through.create_partitions({"secret.keys": 9})).all()
    with pytest.raises(UnknownTopicOrPartitionException):
        (await through.incremental_alter_configs({secret: [AlterConfigOp("retention.ms", "1")]})).all()
    with pytest.raises(UnknownTopicOrPartitionException):
        (await through.delete_topics(["secret.keys"])).all()
    assert len((await cluster.describe_topics(["secret.keys"]))["secret.keys"].partitions) == 1
