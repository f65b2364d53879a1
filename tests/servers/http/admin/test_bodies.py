"""Bodies of writes, as a broker takes them (more in `test_admin.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.api_serving import api_served

_HERE = "/admin/v2/persistent/public/default"
_JSON = {"Content-Type": "application/json"}


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
async def test_properties(tmp_path: Path, body: bytes, status: int) -> None:
    async with api_served(tmp_path, topics={}) as served:
        said = await served.ask(f"{_HERE}/new", "PUT", data=body, headers=_JSON)
        assert said.status == status, said.body
        if status == 204:
            assert (await served.ask(f"{_HERE}/new/properties")).json == {"a": "true", "b": "1.5", "c": "x"}


@pytest.mark.parametrize(
    "body", ["1e999", "NaN", "-Infinity", "true", "null", '"x"', "1000001", "9" * 5000, '"3_0"', '"٣"']
)
async def test_numbers_that_are_none(tmp_path: Path, body: str) -> None:
    async with api_served(tmp_path, topics={}) as served:
        said = await served.ask(f"{_HERE}/new/partitions", "PUT", data=body, headers=_JSON)
        assert said.status in {400, 406}
        assert set(said.json) == {"reason"}
        assert (await served.ask(f"{_HERE}/new/partitions")).status == 404
