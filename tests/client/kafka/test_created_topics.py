from __future__ import annotations

import pytest

from broker_core.client.kafka.configs import Config
from broker_core.client.kafka.created_topics import CreatedTopic, CreateTopicsResult
from broker_core.client.kafka.kafka_errors import (
    TopicAuthorizationException,
    TopicExistsException,
    UnsupportedVersionException,
)
from broker_core.wire.kafka import ZERO_ID

RESULT = CreateTopicsResult(
    {"made": None, "there": TopicExistsException(), "hidden": None, "old": None},
    {
        "made": CreatedTopic(ZERO_ID, 3, 1, Config([])),
        "there": UnsupportedVersionException(),
        "hidden": TopicAuthorizationException(),
        "old": UnsupportedVersionException(),
    },
)


def test_what_was_made() -> None:
    assert RESULT["made"] is None
    assert (RESULT.num_partitions("made"), RESULT.replication_factor("made")) == (3, 1)
    assert RESULT.topic_id("made") == ZERO_ID
    assert len(RESULT.config("made")) == 0


@pytest.mark.parametrize("method", ["config", "num_partitions", "replication_factor", "topic_id"])
def test_each_method_raises_what_kafkas_own_client_raises(method: str) -> None:
    ask = getattr(RESULT, method)
    with pytest.raises(TopicExistsException):
        ask("there")
    with pytest.raises(TopicAuthorizationException):
        ask("hidden")
    with pytest.raises(UnsupportedVersionException):
        ask("old")
    with pytest.raises(KeyError):
        ask("none")


def test_a_topic_whose_configs_are_hidden_was_made() -> None:
    assert RESULT["hidden"] is None
    assert list(RESULT.errors) == ["there"]
