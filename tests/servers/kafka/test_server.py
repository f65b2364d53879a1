from __future__ import annotations

import asyncio
from ipaddress import ip_network
from pathlib import Path

from structlog.testing import capture_logs

from broker_core.cli.server_process.server_process import ready_line
from broker_core.settings import LimitsSettings
from broker_core.wire.kafka import API_VERSIONS, ErrorCode, read_response, request_frame
from tests.support.kafka_serving import kafka_broker, raw_client


def test_every_version_of_api_versions_is_answered(tmp_path: Path) -> None:
    async def scene() -> None:
        async with kafka_broker(tmp_path) as broker:
            assert broker.kafka_address is not None
            async with raw_client(broker.kafka_address) as client:
                software = {"client_software_name": "test", "client_software_version": "1"}
                for version in range(5):
                    answer = await client.ask(API_VERSIONS, version, software if version >= 3 else {})
                    assert answer["error_code"] == ErrorCode.NONE
                    keys = {each["api_key"]: each["max_version"] for each in answer["api_keys"]}
                    assert keys[18] == 4

    asyncio.run(scene())


def test_answers_are_in_the_order_of_pipelined_requests(tmp_path: Path) -> None:
    async def scene() -> None:
        async with kafka_broker(tmp_path) as broker:
            assert broker.kafka_address is not None
            async with raw_client(broker.kafka_address) as client:
                sent = [client.send(API_VERSIONS, 0, {}) for _ in range(500)]
                answered = [read_response(API_VERSIONS, 0, await client.message())[0] for _ in sent]
                assert answered == sent

    asyncio.run(scene())


def test_a_newer_version_of_api_versions_is_told_which_there_are(tmp_path: Path) -> None:
    async def scene() -> None:
        async with kafka_broker(tmp_path) as broker:
            assert broker.kafka_address is not None
            async with raw_client(broker.kafka_address) as client:
                client.send(API_VERSIONS, 9, {"client_software_name": "a", "client_software_version": "1"})
                _, answer = read_response(API_VERSIONS, 0, await client.message())
                assert answer["error_code"] == ErrorCode.UNSUPPORTED_VERSION
                assert answer["api_keys"] == [{"api_key": 18, "min_version": 0, "max_version": 4}]

    asyncio.run(scene())


def test_what_is_not_understood_closes_the_connection(tmp_path: Path) -> None:
    unknown = bytearray(request_frame(API_VERSIONS, 0, 1, None, {}))
    unknown[4:6] = b"\x7f\xff"

    async def scene() -> None:
        async with kafka_broker(tmp_path) as broker:
            assert broker.kafka_address is not None
            for data in (bytes(unknown), b"\x7f\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n"):
                async with raw_client(broker.kafka_address) as client:
                    client.writer.write(data)
                    assert await client.message() == b""

    asyncio.run(scene())


def test_the_ready_line_has_the_address() -> None:
    assert ready_line({"kafka": ("127.0.0.1", 9092)}) == "ready kafka=127.0.0.1:9092"


async def test_the_address_behind_a_proxy_is_that_of_its_preamble(tmp_path: Path) -> None:
    preamble = b"PROXY TCP4 192.0.2.7 192.0.2.11 56324 9092\r\n"
    limits = LimitsSettings(connections_per_address=1)
    proxies = (ip_network("127.0.0.0/8"),)
    async with kafka_broker(tmp_path, tables={"limits": limits}, haproxy_from=proxies) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as first, raw_client(broker.kafka_address) as second:
            first.writer.write(preamble)
            answer = await first.ask(API_VERSIONS, 0, {})
            assert answer["error_code"] == ErrorCode.NONE
            with capture_logs() as logs:
                second.writer.write(preamble)
                assert await second.message() == b""
        assert [(each["peer"], each["reason"]) for each in logs] == [("192.0.2.7", "address")]
