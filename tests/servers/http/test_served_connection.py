from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from broker_core.servers.http import served_connection
from tests.support.http_serving import Served

ASK = b"GET /-/live HTTP/1.1\r\nHost: x\r\n"


async def test_a_head_that_comes_slowly_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_connection, "_TIMEOUT", 0.01)
    for begun in (b"G", ASK):
        reader, writer = await asyncio.open_connection(*served.server.address)
        writer.write(begun)
        said = await reader.read()
        assert said.endswith(
            b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        writer.close()


async def test_a_head_of_many_lines_is_bounded_as_a_whole(served: Served) -> None:
    reader, writer = await asyncio.open_connection(*served.server.address)
    writer.write(ASK)
    line = b"X: " + b"a" * 10_000 + b"\r\n"
    for _ in range(9):
        writer.write(line)
        await writer.drain()
        await asyncio.sleep(0)
    writer.write(line)
    said = await reader.read()
    assert said.startswith((b"HTTP/1.1 431", b"HTTP/1.0 400", b"HTTP/1.1 400"))
    writer.close()


async def test_requests_in_pieces_and_one_after_the_other_are_answered(served: Served) -> None:
    reader, writer = await asyncio.open_connection(*served.server.address)
    for _ in range(20):
        for piece in (ASK, b"X: " + b"a" * 8000, b"\r\n", b"\r\n"):
            writer.write(piece)
            await writer.drain()
        assert b'{"status":"live"}' in await reader.readuntil(b"}")
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("line", [b"Authorization: Bearer hunter2\0", b"Authorization : hunter2", b"hunter2"])
async def test_what_is_no_http_is_not_in_the_log(
    served: Served, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection(*served.server.address)
    writer.write(ASK + line + b"\r\n\r\n")
    with capture_logs() as logs:
        said = await reader.read()
    assert said.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert b"hunter2" not in said
    assert b'"cause":"BAD_REQUEST"' in said
    assert [each["log_level"] for each in logs] == ["debug"]
    assert "hunter2" not in f"{logs}{caplog.text}"
    writer.close()
