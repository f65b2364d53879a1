from __future__ import annotations

import pytest

from broker_core.client import ClientError, ConnectionLost
from broker_core.client.kafka.kafka_errors import TopicExistsException
from broker_core.client.kafka.results import Results


def test_values_and_errors_by_item() -> None:
    rows: dict[str, int | ClientError] = {
        "b": 1,
        "a": TopicExistsException("no"),
        "c": ConnectionLost("gone"),
    }
    results = Results(rows)
    assert list(results) == ["b", "a", "c"]
    assert len(results) == 3
    assert results["b"] == 1
    assert "a" in results
    with pytest.raises(TopicExistsException, match="no"):
        results["a"]
    with pytest.raises(ConnectionLost, match="gone"):
        results["c"]
    with pytest.raises(KeyError):
        results["none"]
    assert list(results.errors) == ["a", "c"]
    with pytest.raises(TopicExistsException):
        results.all()


def test_each_reader_gets_an_error_of_its_own() -> None:
    rows: dict[str, int | ClientError] = {"a": TopicExistsException("no")}
    results = Results(rows)
    raised = []
    for _ in range(2):
        with pytest.raises(TopicExistsException) as each:
            results["a"]
        raised.append(each.value)
    assert raised[0] is not raised[1]


def test_all_of_them() -> None:
    assert Results({"a": 1, "b": 2}).all() == {"a": 1, "b": 2}
    assert Results({}).all() == {}


def test_what_failed_is_shown() -> None:
    rows: dict[str, int | ClientError] = {"a": TopicExistsException("no"), "b": 1}
    assert repr(Results(rows)) == "<Results of 2: 1 failed, 'a': TOPIC_ALREADY_EXISTS: no>"
