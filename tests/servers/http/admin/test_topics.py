"""Writes of `pulsar-admin`: rights, masks and what they leave (outcomes: `test_admin.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.api_serving import api_served
from tests.support.plugins import PluginOf

_HERE = "/admin/v2/persistent/public/default"
_JSON = {"Content-Type": "application/json"}
#: Every write there is.
_WRITES = [
    ("PUT", "/new"),
    ("DELETE", "/bills"),
    ("PUT", "/new/partitions"),
    ("POST", "/orders/partitions"),
    ("DELETE", "/orders/partitions"),
    ("PUT", "/bills/properties"),
    ("DELETE", "/bills/properties?key=region"),
]


@pytest.mark.parametrize(("method", "path"), _WRITES)
async def test_a_gateway_sends_writers_to_the_brokers(tmp_path: Path, method: str, path: str) -> None:
    upstream = {"service_url": "pulsar://127.0.0.1:1"}
    async with api_served(tmp_path, upstream=upstream) as served:
        said = await served.ask(f"{_HERE}{path}", method)
        assert said.status == 501
        assert "ask the web service of a broker" in said.json["reason"]


async def test_a_hidden_topic_has_no_properties_to_read(tmp_path: Path) -> None:
    def visible(topics: pa.LargeStringArray) -> Any:
        return pc.invert(pc.match_substring(topics, "orders"))

    async with api_served(tmp_path, plugins={"p": PluginOf(visible=visible)}) as served:
        assert (await served.ask(f"{_HERE}/bills/properties")).json == {"region": "us"}
        for path in ("/orders/properties", "/orders/partitions", "/nowhere/properties"):
            said = await served.ask(f"{_HERE}{path}")
            assert said.status == 404
            assert said.json == {
                "reason": f"Topic persistent://public/default/{path.split('/')[1]} not found"
            }


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"a": true, "b": 1.5, "c": "x"}', 204),
        (b'{"a": [1]}', 400),
        (b'{"a": "1", "a": "2"}', 400),
        (b'{"a": "\xff"}', 400),
        (b"[" * 100_000, 400),
        (b'{"a": "' + b"x" * 300_000 + b'"}', 413),
    ],
    ids=["values", "list", "twice", "no text", "deep", "large"],
)
async def test_properties_in_a_body(tmp_path: Path, body: bytes, status: int) -> None:
    async with api_served(tmp_path, topics={}) as served:
        said = await served.ask(f"{_HERE}/new", "PUT", data=body, headers=_JSON)
        assert said.status == status, said.body
        if status == 204:
            assert (await served.ask(f"{_HERE}/new/properties")).json == {"a": "true", "b": "1.5", "c": "x"}


@pytest.mark.parametrize(
    "body", ["1e999", "NaN", "-Infinity", "true", "null", '"x"', "1000001", "9" * 5000, '"3_0"', '"٣"']
)
async def test_numbers_of_partitions_that_are_none(tmp_path: Path, body: str) -> None:
    async with api_served(tmp_path, topics={}) as served:
        said = await served.ask(f"{_HERE}/new/partitions", "PUT", data=body, headers=_JSON)
        assert said.status in {400, 406}
        assert set(said.json) == {"reason"}
        assert (await served.ask(f"{_HERE}/new/partitions")).status == 404
