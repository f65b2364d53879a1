"""Kafka's clients at this server: what they make of its answers is what they make of those of Kafka 4.3.1.

What they make of a real broker's is recorded (record_kafka_clients.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.interop.kafka_clients.python.raw_requests import RawRequests
from tests.interop.kafka_programs import CLIENTS, DIFFERENT, cases, differences
from tests.interop.kafka_stage import ROADS, KafkaServed, kafka_server
from tests.interop.maven import PeerUnavailable
from tests.interop.record_kafka_clients import recorded

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=ROADS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServed]:
    """A server with one internal topic; each client deletes what it makes."""
    with kafka_server(tmp_path_factory.mktemp("road"), ROADS[request.param]) as served:
        yield served


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "tools"])
def test_administers_topics_as_at_a_broker(client: str, server: KafkaServed, tmp_path: Path) -> None:
    if client == "raw" and server.clients.protocol != "PLAINTEXT":
        pytest.skip("raw requests come on one road")
    try:
        found = cases(client, server.clients, tmp_path)
    except PeerUnavailable as error:
        pytest.skip(str(error))
    different = differences(recorded()[client], found)
    assert set(different) == {case for name, case in DIFFERENT if name == client}, _told(different)


@pytest.mark.parametrize("server", ["plain"], indirect=True)
def test_apis_that_a_broker_has_too_are_of_the_same_versions(server: KafkaServed) -> None:
    with contextlib.closing(RawRequests(server.clients)) as ask:
        here, broker = ask.api_versions(4), recorded()["raw"]["v/api_versions_v4"]
    ranges, expected = (
        {row["api_key"]: (row["min_version"], row["max_version"]) for row in answer["api_keys"]}
        for answer in (here, broker)
    )
    assert ranges.pop(20142) == (0, 0)
    assert ranges == {key: expected[key] for key in ranges}


def _told(different: Mapping[str, tuple[Any, Any]]) -> str:
    return "\n".join(
        f"{case}\n  a broker: {str(expected)[:1500]}\n  here:     {str(found)[:1500]}"
        for case, (expected, found) in different.items()
    )
