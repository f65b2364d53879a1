from __future__ import annotations

from broker_core.wire.kafka import ErrorCode


def test_a_code_is_the_number_on_the_wire() -> None:
    assert int(ErrorCode.UNKNOWN_TOPIC_ID) == 100
    assert ErrorCode(-1) is ErrorCode.UNKNOWN_SERVER_ERROR
