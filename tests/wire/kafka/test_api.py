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
        assert (once.count, once.error) == (2, 0)
        each = {"topics": [{"name": "a", "configs": configs}] * 2}
        shared = {"topics": [{"name": "a", "configs": once}] * 2}
        assert written(CREATE_TOPICS, "response", version, shared) == written(
            CREATE_TOPICS, "response", version, each
        )


def test_encoded_elements_know_the_first_error_in_them() -> None:
    rows: list[Fields] = [{"name": "a"}, {"name": "b", "error_code": 36}, {"name": "c", "error_code": 17}]
    assert CREATE_TOPICS.response_elements("topics", rows, 7).error == 36
