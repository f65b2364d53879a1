"""Kafka clients that fail, stop half-way, read nothing or are too many: everybody else is served as before."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access import Asker
from broker_core.broker import Broker
from broker_core.catalog import ScramRow
from broker_core.client import LookupSession
from broker_core.kafka.scram.credentials import derive_credential
from broker_core.names import TopicName
from broker_core.servers.kafka import large_requests
from broker_core.servers.kafka.server import KafkaServer
from broker_core.settings import LimitsSettings
from broker_core.wire.kafka import (
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    read_response,
)
from tests.support.eventually import eventually
from tests.support.kafka_serving import RawKafkaClient, kafka_broker, raw_client

RETENTION: dict[str, Any] = {"name": "retention.ms", "value": "7"}
SASL: dict[str, Any] = {"mechanisms": ["PLAIN", "SCRAM-SHA-256"]}


async def add_user(broker: Broker, name: str, password: bytes) -> None:
    made = derive_credential("SCRAM-SHA-256", password)
    row = ScramRow(name, made.mechanism, made.iterations, made.salt, made.stored_key, made.server_key)
    assert broker.catalog is not None
    await asyncio.to_thread(broker.catalog.put_kafka_user, row)


async def login(client: RawKafkaClient, password: bytes) -> int:
    await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    answer = await client.ask(SASL_AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0" + password})
    return int(answer["error_code"])


async def pulsar_lists(broker: Broker) -> int:
    host, port = broker.pulsar_address
    async with LookupSession(f"pulsar://{host}:{port}") as session:
        return len((await session.get_topics("a/b")).topics)


def value(broker: Broker, name: str, **labels: str) -> float:
    registry = broker.pipeline.metrics.registry
    return registry.get_sample_value(f"broker_core_{name}", labels) or 0.0


async def test_hundreds_of_failed_logins_leave_others_their_turns(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path, sasl=SASL) as broker:
        await add_user(broker, "alice", b"pencil")
        assert broker.kafka_address is not None
        address = broker.kafka_address

        async def fail(number: int) -> int:
            async with raw_client(address) as client:
                return await login(client, b"wrong%d" % number)

        with capture_logs():
            failures = [asyncio.create_task(fail(number)) for number in range(300)]
            failed = {"transport": "kafka", "outcome": "bad_password"}
            await eventually(lambda: value(broker, "authentications_total", **failed) >= 10)
            assert await pulsar_lists(broker) == 0
            reader, writer = await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0))
            assert await login(RawKafkaClient(reader, writer), b"pencil") == 0
            assert sum(task.done() for task in failures) < len(failures)
            writer.close()
            for task in failures:
                task.cancel()
            await asyncio.gather(*failures, return_exceptions=True)


async def test_half_open_clients_take_only_the_places_of_their_address(tmp_path: Path) -> None:
    limits = LimitsSettings(connections_per_address=20)
    async with kafka_broker(tmp_path, sasl=SASL, tables={"limits": limits}) as broker:
        assert broker.kafka_address is not None
        silent = [await asyncio.open_connection(*broker.kafka_address) for _ in range(30)]
        for _, writer in silent:
            writer.write(b"\x00\x00\x00")  # of a length, without end
        with capture_logs():
            await eventually(lambda: value(broker, "connections_refused_total", reason="address") == 10)
        await eventually(lambda: value(broker, "kafka_connections") == 20)
        assert await pulsar_lists(broker) == 0  # Pulsar's places are its own
        for _, writer in silent:
            writer.close()
        await eventually(lambda: value(broker, "kafka_connections") == 0)


async def test_a_client_above_the_ceiling_of_files_gets_no_place(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        server = broker._servers["kafka"]
        assert isinstance(server, KafkaServer)
        assert broker.kafka_address is not None
        server._arrivals._file_ceiling = 3
        with capture_logs():
            async with raw_client(broker.kafka_address) as client:
                client.send(METADATA, 12, {"topics": None})
                assert await client.message() == b""
        assert value(broker, "connections_refused_total", reason="files") == 1
        assert await pulsar_lists(broker) == 0


async def test_a_client_that_reads_nothing_is_closed_where_others_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Megabytes may wait in the kernel: only who has read all of them is quick.
    monkeypatch.setattr("broker_core.servers.connection.large_answers.SLOW", 2**30)
    limits = LimitsSettings(heap_permits="4m", permit_timeout="60s")  # type: ignore[arg-type]
    async with kafka_broker(tmp_path, tables={"limits": limits}) as broker:
        catalog = broker.catalog
        assert catalog is not None
        assert broker.kafka_address is not None
        names = [TopicName.parse(f"persistent://public/default/t{number}") for number in range(100)]
        await asyncio.to_thread(lambda: [catalog.create(name, partitions=2000) for name in names])
        # A namespace of a few topics is read without waiting.
        await asyncio.to_thread(
            lambda: catalog.create(TopicName.parse("persistent://a/b/c"), partitions=2000)
        )
        stuck = socket.socket()
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(stuck, broker.kafka_address)
        reader, writer = await asyncio.open_connection(sock=stuck, limit=1024)
        slow = RawKafkaClient(reader, writer)
        # Of topics by name nothing is shared with other answers.
        slow.send(METADATA, 12, {"topics": [{"name": name.local} for name in names]})
        heap = broker.pipeline.permits.heap
        await eventually(lambda: heap.acquired == 4 * 1024 * 1024)
        assert await pulsar_lists(broker) == 2000
        assert value(broker, "connections_closed_total", reason="slow") == 1
        writer.close()
        await eventually(lambda: heap.acquired == 0)


async def test_a_whole_request_is_answered_where_others_hold_frames_that_they_do_not_end(
    tmp_path: Path,
) -> None:
    async with kafka_broker(tmp_path) as broker:
        assert broker.kafka_address is not None
        server = broker._servers["kafka"]
        assert isinstance(server, KafkaServer)
        piece = 8 * 1024 * 1024 - 1000
        frame = (16 * 1024 * 1024).to_bytes(4, "big") + bytes(piece - 4)
        holders = [await asyncio.open_connection(*broker.kafka_address) for _ in range(8)]
        for _, writer in holders:
            writer.write(frame)
        await eventually(lambda: server.load.buffered_bytes >= 8 * (piece - 4))
        topics = [{"name": f"n{number:05d}"} for number in range(1000)]  # more than there is room for
        with capture_logs():
            async with raw_client(broker.kafka_address) as client:
                for _ in range(3):
                    answer = await client.ask(METADATA, 9, {"topics": topics})
                    assert len(answer["topics"]) == 1000
        assert value(broker, "connections_closed_total", reason="buffers") == 1
        for _, writer in holders:
            writer.close()


async def test_the_permits_of_many_configs_come_before_they_are_encoded(tmp_path: Path) -> None:
    limits = LimitsSettings(heap_permits="1m", permit_timeout="60s")  # type: ignore[arg-type]
    async with kafka_broker(tmp_path, tables={"limits": limits}) as broker:
        assert broker.catalog is not None
        assert broker.kafka_address is not None
        own, shared = (TopicName.parse(f"persistent://public/default/{name}") for name in ("own", "shared"))
        for topic in (own, shared):
            await asyncio.to_thread(broker.catalog.create, topic, partitions=1)
        heap = broker.pipeline.permits.heap

        def asks(name: str) -> dict[str, Any]:
            row = {"resource_type": 2, "resource_name": name, "configuration_keys": None}
            return {"resources": [row] * 2000, "include_documentation": True, "include_synonyms": True}

        change = {"resource_type": 2, "resource_name": "own", "configs": [RETENTION]}
        async with raw_client(broker.kafka_address) as client, raw_client(broker.kafka_address) as waiting:
            await client.ask(ALTER_CONFIGS, 1, {"resources": [change]})
            # What topics inherit is in memory once.
            answer = await client.ask(DESCRIBE_CONFIGS, 4, asks("shared"))
            assert len(answer["results"]) == 2000
            everything = await heap.acquire(heap.maximum)
            waiting.send(DESCRIBE_CONFIGS, 4, asks("own"))
            await eventually(lambda: heap.queue_size == 1)
            everything.release()
            number, answer = read_response(DESCRIBE_CONFIGS, 4, await waiting.message())
            assert (number, len(answer["results"])) == (1, 2000)
        await eventually(lambda: heap.acquired == 0)


async def test_huge_requests_of_three_addresses_are_answered_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve that wait at once: none of an address has to wait for two of another's."""
    huge = 20 * 1024
    monkeypatch.setattr(large_requests, "_AT_ONCE", ((16 * 1024, 64), (huge, 8)))
    names = [{"name": f"none-{number:05}"} for number in range(2_000)]
    done: list[str] = []
    async with kafka_broker(tmp_path) as broker:
        assert broker.kafka_address is not None
        server = broker._servers["kafka"]
        assert isinstance(server, KafkaServer)
        host, port = broker.kafka_address
        turns = server._services.large_requests

        async def ask(address: str) -> None:
            reader, writer = await asyncio.open_connection(host, port, local_addr=(address, 0))
            client = RawKafkaClient(reader, writer)
            sent = client.send(METADATA, 9, {"topics": names})
            number, answer = read_response(METADATA, 9, await client.message())
            assert (number, len(answer["topics"])) == (sent, len(names))
            done.append(address)
            writer.close()

        async with turns.turn(huge + 1, Asker(remote_address="127.0.0.9:1")):
            addresses = [f"127.0.0.{each}" for each in (1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3)]
            asked = [asyncio.create_task(ask(address)) for address in addresses]
            await eventually(lambda: turns._alone.waiting == len(asked))
        await asyncio.gather(*asked)
    rounds = [done[low : low + 3] for low in range(0, 12, 3)]
    assert all(len(set(each)) == 3 for each in rounds), done
