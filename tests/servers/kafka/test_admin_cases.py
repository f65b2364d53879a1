"""Clients that administer topics get what an Apache Kafka 4.3.1 broker answered (``tests/vectors``).

The programs are those of ``tests/interop``, in this process, and without TLS and SASL.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from tests.interop.kafka_clients.python.case_lines import Cases, Server, results
from tests.interop.kafka_clients.python.kafka_python_cases import kafka_python_cases
from tests.interop.kafka_clients.python.raw_cases import raw_cases
from tests.interop.kafka_programs import DIFFERENT, differences
from tests.interop.record_kafka_clients import recorded
from tests.support.kafka_serving import kafka_broker
from tests.support.kafka_topics import create


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        create(catalog, "__consumer_offsets", 1)
    async with kafka_broker(tmp_path) as broker:
        yield broker


@pytest.mark.parametrize(("client", "cases"), [("raw", raw_cases), ("kafka-python", kafka_python_cases)])
async def test_clients_get_what_kafka_answers(
    broker: Broker, client: str, cases: Callable[[Server], Cases]
) -> None:
    assert broker.kafka_address is not None
    host, port = broker.kafka_address
    found = await asyncio.to_thread(lambda: dict(results(cases(Server(f"{host}:{port}")))))
    different = differences(recorded()[client], found)
    assert set(different) == {case for name, case in DIFFERENT if name == client}
