"""Bodies as a client on a socket reads them, or does not."""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self
from weakref import ref

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from broker_core.listing.rendered.pieces import BLOCK, BlockSize
from broker_core.servers.http.api import body_writer, topics
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.body_writer import RenderedBody, write_body
from broker_core.servers.http.api.operation import HttpOperation, Reply, Right
from broker_core.servers.http.api.services import ApiServices
from tests.support.api_serving import ApiServed, api_served
from tests.support.eventually import eventually
from tests.support.silent_reader import silent_reader

MANY = 64 * 1024 * 1024


@contextmanager
def caplog_of(name: str) -> Iterator[list[logging.LogRecord]]:
    """The records of a logger of the standard library."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign, assignment]
    logging.getLogger(name).addHandler(handler)
    try:
        yield records
    finally:
        logging.getLogger(name).removeHandler(handler)


class Bodies:
    """The operation ``GET /v1/body``: ``size`` bytes, in pieces as large as they may be; or what ``made`` makes."""

    def __init__(self) -> None:
        self.size = MANY
        self.fails_at: int | None = None
        self.blocks: list[int] = []
        self.threads: list[bool] = []  # whether a thread made each piece
        self.seconds = 0.0  # of the processor that each piece takes, where `used` is read as its clock
        self.used = 0.0
        self.failure: Exception = RuntimeError("a piece that cannot be made")

    def operations(self, _services: ApiServices) -> list[HttpOperation]:
        return [
            HttpOperation("GET", "/v1/body", "body", "x", Right.CREDENTIALS, self.answer, {200: Reply("x")})
        ]

    async def answer(self, request: ApiRequest) -> web.StreamResponse:
        block = BlockSize()
        body = RenderedBody("text/plain", self.pieces(block), block, self.size, b"<", b">")
        return await write_body(request, body, {"X-Is": "here"})

    def pieces(self, block: BlockSize) -> Iterator[bytes]:
        left = self.size
        while left:
            if self.fails_at is not None and self.size - left >= self.fails_at:
                raise self.failure
            self.blocks.append(block.bytes)
            self.threads.append(threading.current_thread() is not threading.main_thread())
            self.used += self.seconds
            piece = bytes([48 + len(self.blocks) % 10]) * min(left, block.bytes)
            left -= len(piece)
            yield piece


@asynccontextmanager
async def bodies(
    folder: Path, monkeypatch: pytest.MonkeyPatch, **tables: Any
) -> AsyncIterator[tuple[ApiServed, Bodies]]:
    made = Bodies()
    monkeypatch.setattr(topics, "operations", made.operations)
    # aiohttp logs what a handler raises with a traceback: a client that is gone is none of that.
    with caplog_of("aiohttp.server") as logged:
        async with api_served(folder, **tables) as served:
            yield served, made
    assert not logged


def direct(served: ApiServed) -> int:
    return served.broker.pipeline.permits.direct.acquired


@pytest.mark.parametrize("size", [0, 1, 60_000, 66_000, 5_000_000])
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_every_byte_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, encoding: str
) -> None:
    async with bodies(tmp_path, monkeypatch) as (served, made):
        made.size = size
        said = await served.ask("/v1/body", headers={"Accept-Encoding": encoding})
        assert (len(said.body), said.body[:1], said.body[-1:]) == (size + 2, b"<", b">")
        assert said.headers["X-Is"] == "here"
        # The connection goes on.
        head = await served.ask("/v1/body", "HEAD", headers={"Accept-Encoding": encoding})
        assert head.body == b""
        for header in ("Content-Type", "Content-Encoding", "X-Is"):
            assert head.headers.get(header) == said.headers.get(header)
        assert len((await served.ask("/v1/body")).body) == size + 2


async def test_a_client_of_http_1_0_reads_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bodies(tmp_path, monkeypatch) as (served, made):
        made.size = 300_000
        said = await served.raw(b"GET /v1/body HTTP/1.0\r\n\r\n")
        head, _, body = said.partition(b"\r\n\r\n")
        assert b"chunked" not in head
        assert len(body) == made.size + 2


class PiecesAlive:
    """Three pieces, and how many of the earlier ones are still held as each is made."""

    def __init__(self) -> None:
        self.made: list[ref[memoryview]] = []
        self.alive: list[int] = []

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> memoryview:
        self.alive.append(sum(each() is not None for each in self.made))
        if len(self.made) == 3:
            raise StopIteration
        piece = memoryview(b"a" * 100_000)
        self.made.append(ref(piece))
        return piece


@pytest.mark.parametrize("compress", [None, zlib.compressobj(1, wbits=31)])
def test_a_piece_is_gone_before_the_next_one_is_made(compress: Any) -> None:
    pieces = PiecesAlive()
    source = body_writer._BodyPieces(RenderedBody("text/plain", pieces, BlockSize(), 300_000), compress)
    while source.next() is not None:
        pass
    assert pieces.alive == [0, 0, 0, 0]


async def test_pieces_are_small_until_the_reader_is_known_to_be_quick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bodies(tmp_path, monkeypatch) as (served, made):
        assert len((await served.ask("/v1/body")).body) == MANY + 2
        assert made.blocks[0] == 64 * 1024
        assert max(made.blocks) == BLOCK


@pytest.mark.parametrize(("seconds", "in_threads"), [(0.00001, False), (0.1, True)])
async def test_pieces_that_take_long_are_made_in_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, in_threads: bool
) -> None:
    """By a clock that says what a piece took whatever else the machine does."""
    async with bodies(tmp_path, monkeypatch) as (served, made), aiohttp.ClientSession() as client:
        monkeypatch.setattr(body_writer, "time", SimpleNamespace(thread_time=lambda: made.used))
        made.size, made.seconds = 8 * 1024 * 1024, seconds
        async with client.get(f"{served.url}/v1/body") as response:
            assert len(await response.read()) == made.size + 2
        first, *later = made.threads
        assert first  # nothing is known of it
        assert later == [in_threads] * len(later)


async def test_a_client_that_does_not_read_holds_little_and_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bodies(tmp_path, monkeypatch, pulsar={"listen": "127.0.0.1:0", "write_timeout": "100ms"}) as (
        served,
        _,
    ):
        with capture_logs() as logs:
            sock = await silent_reader(served, "/v1/body")

            def is_cut() -> bool:
                return served.sample("connections_closed_total", reason="stalled") == 1

            await eventually(lambda: direct(served) > 0 or is_cut())
            assert direct(served) <= 2 * BLOCK
            await eventually(is_cut)
            await eventually(lambda: direct(served) == 0)
            await eventually(lambda: not len(served.broker._clients))
        assert [event["event"] for event in logs] == ["an HTTP client has stopped reading"]
        sock.close()


async def test_what_a_client_holds_is_free_as_soon_as_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bodies(tmp_path, monkeypatch) as (served, _):
        sock = await silent_reader(served, "/v1/body")
        await eventually(lambda: direct(served) > 0)
        sock.close()
        await eventually(lambda: direct(served) == 0)


async def test_a_failure_before_the_first_piece_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bodies(tmp_path, monkeypatch) as (served, made):
        for size in (100, MANY):
            made.size, made.fails_at = size, 0
            said = await served.ask("/v1/body")
            assert (said.status, said.json["cause"]) == (500, "INTERNAL")


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_failure_in_the_middle_is_no_clean_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    async with bodies(tmp_path, monkeypatch) as (served, made):
        made.fails_at = MANY // 2
        with pytest.raises(aiohttp.ClientPayloadError):
            await served.ask("/v1/body", headers={"Accept-Encoding": encoding})


async def test_many_that_do_not_read_leave_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bodies(tmp_path, monkeypatch, limits={"direct_permits": "20MB"}) as (served, _):
        silent = [await silent_reader(served, "/v1/body") for _ in range(20)]
        permits = served.broker.pipeline.permits.direct
        await eventually(lambda: permits.acquired >= 20 * 64 * 1024)
        assert len((await served.ask("/v1/body")).body) == MANY + 2
        assert permits.acquired <= permits.maximum
        for sock in silent:
            sock.close()
