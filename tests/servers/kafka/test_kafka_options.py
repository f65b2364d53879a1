from __future__ import annotations

from broker_core.servers.kafka import ConnectionTimes, KafkaOptions


def test_a_stranger_sends_less() -> None:
    options = KafkaOptions()
    assert options.largest_before_authentication < options.largest_request


def test_a_silent_client_is_closed_after_ten_minutes() -> None:
    times = ConnectionTimes()
    assert times.idle * times.keep_alive == 600
