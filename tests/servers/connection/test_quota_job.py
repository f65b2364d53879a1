"""Quotas at each transport: what a client over its quota gets, and that its PING does not wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from broker_core.client import LookupSession, ServerRefused
from broker_core.client.kafka import AdminClient
from broker_core.errors import ServerError
from broker_core.wire.kafka import METADATA
from broker_core.wire.pulsar import BaseCommand
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.eventually import eventually
from tests.support.kafka_serving import raw_client
from tests.support.raw_client import RawClient, Refused

#: One request, then none for an hour; nobody waits.
SPENT = {"name": "q", "requests": 1 / 3600, "burst": "1s", "max_wait": 0}


async def test_pulsar_a_listing_is_refused_with_too_many_requests(tmp_path: Path) -> None:
    async with api_served(tmp_path, quotas=[SPENT]) as served:  # type: ignore[arg-type]
        host, port = served.broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as session:
            await session.get_topics("public/default")
            with pytest.raises(ServerRefused, match="quota 'q' of this client is used up") as refused:
                await session.get_topics("public/default")
            assert refused.value.code is ServerError.TooManyRequests
            with pytest.raises(ServerRefused) as refused:  # clients close the connection for the other code
                await session.partitioned_metadata("persistent://public/default/orders")
            assert refused.value.code is ServerError.MetadataError
        assert served.sample("listing_errors_sent_total", reason="quota") == 1


async def test_pulsar_ping_is_answered_while_listings_wait(tmp_path: Path) -> None:
    waits: dict[str, Any] = {"name": "q", "requests": 1 / 3600, "burst": "1s", "max_wait": "9h", "queue": 3}
    async with api_served(tmp_path, quotas=[waits]) as served:  # type: ignore[arg-type]
        async with await RawClient.open(served.broker.pulsar_address) as client:
            await client.send(b"".join(client.question()[1] for _ in range(5)))
            answers = [await client.receive() for _ in range(2)]  # the first, and the one too many
            told = {each.type for each in answers}
            assert told == {BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, BaseCommand.ERROR}
            await client.ping()
            assert served.sample("quota_waiting", quota="q") == 3
        await eventually(lambda: served.sample("quota_waiting", quota="q") == 0)  # the client is gone


async def test_http_has_429_with_retry_after(tmp_path: Path) -> None:
    async with api_served(tmp_path, quotas=[SPENT]) as served:  # type: ignore[arg-type]
        assert (await served.ask(f"{NAMESPACE}/topics")).status == 200
        said = await served.ask(f"{NAMESPACE}/topics")
        assert (said.status, said.json["cause"]) == (429, "QUOTA")
        assert 3000 < int(said.headers["Retry-After"]) <= 3600
        assert (await served.ask("/admin/v2/persistent/public/default")).status == 429
        assert (await served.ask("/-/live")).status == 200
        assert served.sample("quota_requests_total", quota="q", outcome="refused") == 2


async def test_kafka_is_told_its_throttle_time_and_not_read_for_as_long(tmp_path: Path) -> None:
    quota: dict[str, Any] = {"name": "q", "requests": 5, "burst": "1ms"}
    async with api_served(tmp_path, quotas=[quota], kafka={"listen": "127.0.0.1:0"}) as served:  # type: ignore[arg-type]
        assert served.broker.kafka_address is not None
        host, port = served.broker.kafka_address
        loop = asyncio.get_running_loop()
        async with AdminClient(f"{host}:{port}") as client:
            began = loop.time()
            for _ in range(4):
                await client.list_topics()
            assert loop.time() - began > 0.5  # three tokens of 0.2 s, but for what was there
        assert served.sample("quota_requests_total", quota="q", outcome="at_once") >= 3


async def test_bytes_of_an_answer_are_paid_by_the_next_one_whatever_the_transport(tmp_path: Path) -> None:
    """An answer of more bytes than the quota has is sent; the next waits for as long, or is refused."""
    quota: dict[str, Any] = {"name": "b", "bytes": 1, "burst": "1s", "max_wait": 0, "per": ["address"]}
    for number, spend in enumerate((_by_pulsar, _by_http, _by_kafka)):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with api_served(folder, quotas=[quota], kafka={"listen": "127.0.0.1:0"}) as served:  # type: ignore[arg-type]
            await spend(served)
            said = await served.ask(f"{NAMESPACE}/topics")
            assert (said.status, said.json["cause"]) == (429, "QUOTA")
            assert int(said.headers["Retry-After"]) > 10  # a byte a second
            async with await RawClient.open(served.broker.pulsar_address) as client:
                with pytest.raises(Refused, match="quota 'b' of this client is used up") as refused:
                    await client.ask()
                assert refused.value.code is ServerError.TooManyRequests
                await client.ping()


async def _by_pulsar(served: ApiServed) -> None:
    async with await RawClient.open(served.broker.pulsar_address) as client:
        assert len((await client.ask()).topics) == 3


async def _by_http(served: ApiServed) -> None:
    assert (await served.ask(f"{NAMESPACE}/topics")).status == 200


async def _by_kafka(served: ApiServed) -> None:
    """Kafka has a field for it: how long the client is not read."""
    assert served.broker.kafka_address is not None
    async with raw_client(served.broker.kafka_address) as client:
        answer = await client.ask(METADATA, 9, {"topics": None})
        assert answer["throttle_time_ms"] > 1000
        assert {topic["name"] for topic in answer["topics"]} == {"orders", "bills"}


async def test_kafka_a_client_that_would_wait_for_too_long_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.servers.kafka.request_handler._MOST_HELD", 0.01)
    async with api_served(tmp_path, quotas=[SPENT], kafka={"listen": "127.0.0.1:0"}) as served:  # type: ignore[arg-type]
        assert (await served.ask(f"{NAMESPACE}/topics")).status == 200  # which the quota has no more
        assert served.broker.kafka_address is not None
        async with raw_client(served.broker.kafka_address) as client:
            client.send(METADATA, 9, {"topics": None})
            assert await client.message() == b""
        assert served.sample("quota_requests_total", quota="q", outcome="refused") == 1


async def test_of_quotas_that_do_not_match_nothing_is_seen(tmp_path: Path) -> None:
    quota = SPENT | {"namespaces": ["acme/*"]}
    async with api_served(tmp_path, quotas=[quota]) as served:  # type: ignore[arg-type]
        for _ in range(3):
            assert (await served.ask(f"{NAMESPACE}/topics")).status == 200
        assert served.sample("quota_buckets", quota="q") == 0
