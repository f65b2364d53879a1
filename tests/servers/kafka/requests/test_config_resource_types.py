from __future__ import annotations

import pytest

from broker_core.kafka.acls.bindings import Operation
from broker_core.servers.kafka.requests.config_resource_types import is_known, not_this_broker, unauthorized
from broker_core.wire.kafka import DESCRIBE_CONFIGS, ErrorCode
from tests.support.kafka_calls import call_of


def test_types_are_known_by_their_numbers() -> None:
    assert [number for number in range(-1, 100) if is_known(number)] == [2, 4, 8, 16, 32]


@pytest.mark.parametrize("name", ["1", "+1", "01"])
def test_the_broker_is_called_by_its_number(name: str) -> None:
    assert not_this_broker(name, 1, is_called="Broker", instead_of=",") is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x", "Broker id must be an integer, but it is: x"),
        ("", "Broker id must be an integer, but it is: "),
        ("2147483648", "Broker id must be an integer, but it is: 2147483648"),
        ("9", "Unexpected broker id, expected 1, but received 9"),
        ("-1", "Unexpected broker id, expected 1, but received -1"),
    ],
)
def test_another_broker_is_none(name: str, message: str) -> None:
    error = not_this_broker(name, 1, is_called="Broker", instead_of=",")
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, message)


def test_everybody_may_see_the_broker_where_there_are_no_acls() -> None:
    assert unauthorized(call_of(DESCRIBE_CONFIGS, 4), 4, "1", Operation.DESCRIBE_CONFIGS) is None
    assert unauthorized(call_of(DESCRIBE_CONFIGS, 4), 32, "g", Operation.DESCRIBE_CONFIGS) is None
