from __future__ import annotations

from broker_core.servers.kafka.services import ConnectionTimes, ShownNode
from tests.support.kafka_calls import services_of


def test_nothing_is_written_without_a_catalogue() -> None:
    assert services_of().catalog is None


def test_a_node_is_what_clients_connect_to() -> None:
    assert ShownNode(1, "h", 9092) == ShownNode(1, "h", 9092)


def test_a_silent_client_is_closed_after_ten_minutes() -> None:
    times = ConnectionTimes()
    assert times.idle * times.keep_alive == 600
