from __future__ import annotations

from broker_core.wire.kafka import API_VERSIONS, CREATE_TOPICS, Fields
from tests.support.kafka_values import written


def test_an_api_is_flexible_from_a_version_on() -> None:
    assert not API_VERSIONS.is_flexible(2)
    assert API_VERSIONS.is_flexible(3)


def test_elements_that_are_encoded_once_are_written_as_their_values_are() -> None:
    configs: list[Fields] = [
        {"name": "retention.ms", "value": "1"},
        {"name": "cleanup.policy", "value": None},
    ]
    for version in (4, 7):
        once = CREATE_TOPICS.response_elements("topics.configs", configs, version)
        assert once.count == 2
        each = {"topics": [{"name": "a", "configs": configs}] * 2}
        shared = {"topics": [{"name": "a", "configs": once}] * 2}
        assert written(CREATE_TOPICS, "response", version, shared) == written(
            CREATE_TOPICS, "response", version, each
        )
