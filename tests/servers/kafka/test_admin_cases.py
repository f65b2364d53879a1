"""Clients that administer topics get what an Apache Kafka 4.3.1 broker answered (``tests/vectors``)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from tests.support.kafka_admin_cases.kafka_python_cases import kafka_python_cases
from tests.support.kafka_admin_cases.raw_cases import Cases, raw_cases
from tests.support.kafka_admin_cases.results import canonical, normal
from tests.support.kafka_serving import kafka_broker
from tests.support.kafka_topics import create
from tests.support.vectors import VECTORS

#: Cases that differ, each with the reason; docs/reference/kafka.md#differences-from-a-broker has the table.
_DIFFERENT: Final = {
    "raw": {
        **{f"v/api_versions_v{version}": "other APIs are advertised" for version in range(5)},
        "pages_cursor_max_int": "Kafka's sum of two numbers overflows",
        "pages_cursor_max_int_minus_1_all": "Kafka's sum of two numbers overflows",
    },
    "kafka-python": {},
}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        create(catalog, "__consumer_offsets", 1)
    async with kafka_broker(tmp_path) as broker:
        yield broker


@pytest.mark.parametrize(("client", "cases"), [("raw", raw_cases), ("kafka-python", kafka_python_cases)])
async def test_clients_get_what_kafka_answers(
    broker: Broker, client: str, cases: Callable[[tuple[str, int]], Cases]
) -> None:
    address = broker.kafka_address
    assert address is not None
    found = await asyncio.to_thread(_results, cases(address))
    expected = _expected(client)
    different = {name for name in expected if found.get(name) != expected[name]}
    assert different == set(_DIFFERENT[client])
    assert found.keys() == expected.keys()


def _results(cases: Cases) -> dict[str, object]:
    results: dict[str, object] = {}
    for name, run in cases:
        try:
            result = normal(run())
        except Exception as error:  # noqa: BLE001 - whatever a client raises is its answer
            result = normal({"raised": type(error).__name__, "message": str(error)})
        results[name] = canonical(name, json.loads(json.dumps(result)))
    return results


def _expected(client: str) -> dict[str, Any]:
    recorded = json.loads((VECTORS / "kafka-4.3.1-admin.json").read_text(encoding="utf-8"))["cases"][client]
    return {name: canonical(name, result) for name, result in recorded.items()}
