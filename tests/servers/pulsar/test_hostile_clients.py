"""Hostile bytes and many connections: the server stays up and bounded, and answers other clients."""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.servers.pulsar import PulsarOptions
from broker_core.settings import PulsarSettings
from broker_core.wire.pulsar import commands
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import RawClient, Refused

NAMES = [f"persistent://t/n/topic-{number}" for number in range(1000)]
MIB = 1024 * 1024
SMALL = 16 * 1024  # a buffer of the kernel


async def lives(s: Serving) -> None:
    """Others are answered."""
    async with await s.client() as client:
        assert len((await client.ask("t/n")).topics) == len(NAMES)


def resident() -> int:
    """Bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of every connection are open files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 5000:
        pytest.skip(f"this machine allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 5000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("seed", range(8))
async def test_random_bytes(seed: int) -> None:
    rng = random.Random(seed)
    async with serving(MemoryLister(NAMES)) as s:
        for handshake in (True, False):
            async with await s.client(handshake=handshake) as client:
                try:
                    for _ in range(rng.randrange(1, 6)):
                        await client.send(rng.randbytes(rng.choice((1, 7, 100, 5000, 100_000))))
                    client.finish()
                except OSError:
                    pass  # closed at the first bad frame
                await client.closed()
        await lives(s)


@pytest.mark.parametrize("seed", range(8))
async def test_frames_with_a_few_bytes_changed(seed: int) -> None:
    """Some are still commands, some are none: each is answered, or its connection closed."""
    rng = random.Random(seed)
    good = [
        commands.connect("Pulsar-Java-v4"),
        commands.get_topics(
            1, "t/n", 2, topics_pattern="t/n/.*", topics_hash="01234567", properties={"a": "b"}
        ),
        commands.lookup(2, "persistent://t/n/x"),
        commands.partitioned_metadata(3, "persistent://t/n/x"),
        commands.ping(),
    ]
    async with serving(MemoryLister(NAMES)) as s:
        for _ in range(30):
            frame = bytearray(rng.choice(good))
            for _ in range(rng.randrange(1, 4)):
                frame[rng.randrange(8 if rng.random() < 0.8 else 0, len(frame))] = rng.randrange(256)
            async with await s.client() as client:
                await client.send(bytes(frame) + commands.ping())
                client.finish()
                await client.closed()
        await lives(s)


async def test_truncated_frames() -> None:
    frame = commands.get_topics(1, "t/n", topics_pattern="t/n/.*")
    async with serving(MemoryLister(NAMES)) as s:
        for size in range(1, len(frame)):
            async with await s.client() as client:
                await client.send(frame[:size])
                await eventually(lambda size=size: s.server.load.buffered_bytes == size)  # type: ignore[misc]
            await s.nothing_held()
        await lives(s)


@pytest.mark.parametrize("total", [0, 1, 3, 8, 2**31 - 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("command", [5, 2**31 - 1, 2**31, 2**32 - 1])
async def test_sizes_that_lie(total: int, command: int) -> None:
    async with serving(MemoryLister(NAMES)) as s, await s.client() as client:
        await client.send(total.to_bytes(4, "big") + command.to_bytes(4, "big") + b"hello")
        assert await client.closed() == []
        await lives(s)


async def test_connections_that_only_connect(many_files: None) -> None:
    async with serving(MemoryLister(NAMES)) as s:
        await lives(s)  # the first listing of a process loads what stays
        before = resident()
        clients = [await s.client(handshake=False) for _ in range(2000)]
        await eventually(lambda: s.server.connections == 2000)
        await lives(s)
        assert resident() - before < 60 * MIB  # the clients' own included
        for client in clients:
            client.close()
        await eventually(lambda: s.server.connections == 0)
        await lives(s)


async def test_half_frames_hold_bounded_memory(many_files: None) -> None:
    """Each could hold five mebibytes; all together they may not hold more than a fixed sum."""
    half = (5 * MIB).to_bytes(4, "big") + (5 * MIB - 4).to_bytes(4, "big") + b"x" * (256 * 1024)
    async with serving(MemoryLister(NAMES)) as s, await s.client() as innocent:
        clients = []
        for _ in range(400):
            client = await s.client(handshake=False)
            clients.append(client)
            await client.send(half)
            assert s.server.load.buffered_bytes <= 65 * MIB
        await eventually(lambda: s.sample("connections_closed_total", reason="buffers") > 100)
        assert len((await innocent.ask("t/n")).topics) == len(NAMES)
        for client in clients:
            client.close()
        await s.nothing_held()
        await innocent.ping()


@pytest.mark.parametrize("pattern", ["x" * MIB, "(" * MIB, "é" * MIB, "(a|b)*" * 100_000])
async def test_a_pattern_of_megabytes_is_never_compiled(pattern: str) -> None:
    async with serving(MemoryLister(NAMES)) as s, await s.client() as client:
        await lives(s)  # the first listing of a process loads what stays
        before = resident()
        for number in range(20):
            answer = await client.ask("t/n", pattern=f"{pattern}{number}")
            assert (len(answer.topics), answer.filtered) == (len(NAMES), False)
        assert resident() - before < 60 * MIB  # they are not remembered


async def test_bombs_of_properties() -> None:
    pair = b"\x32\x04\x0a\0\x12\0"
    body = commands.get_topics(9, "t/n")[13:] + pair * 700_000
    command = b"\x08\x20\x82\x02" + _varint(len(body)) + body
    frame = (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command
    assert len(frame) < 5 * MIB
    async with serving(MemoryLister(NAMES)) as s, await s.client() as client:
        for _ in range(3):
            await client.send(frame)
            error = (await client.receive()).error
            assert (error.request_id, error.error) == (9, 22)
        await client.ping()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


async def test_namespaces_of_megabytes() -> None:
    async with serving(MemoryLister(NAMES)) as s, await s.client() as client:
        for number in range(5):
            with pytest.raises(Refused, match=r"InvalidTopicName: .*at most 1024"):
                await client.ask(f"t/{'n' * MIB}{number}")


async def test_pings_of_a_peer_that_reads_no_pong() -> None:
    options = PulsarOptions(PulsarSettings(write_timeout=0.3))
    pings = commands.ping() * 2000
    async with serving(MemoryLister(NAMES), options=options, send_buffer=SMALL) as s:
        client = await s.client(receive_buffer=SMALL)
        before = resident()
        sending = asyncio.create_task(_send_forever(client, pings))
        await eventually(lambda: s.sample("connections_closed_total", reason="stalled") == 1)
        with pytest.raises(ConnectionError):
            await sending
        assert resident() - before < 20 * MIB
        client.close()
        await lives(s)


async def test_errors_for_a_peer_that_reads_none() -> None:
    options = PulsarOptions(PulsarSettings(write_timeout=0.3))
    questions = commands.get_topics(1, "bad") * 2000
    async with serving(MemoryLister(NAMES), options=options, send_buffer=SMALL) as s:
        client = await s.client(receive_buffer=SMALL)
        before = resident()
        sending = asyncio.create_task(_send_forever(client, questions))
        await eventually(lambda: s.sample("connections_closed_total", reason="stalled") == 1)
        with pytest.raises(ConnectionError):
            await sending
        assert resident() - before < 20 * MIB
        client.close()
        await lives(s)


async def _send_forever(client: RawClient, data: bytes) -> None:
    while True:
        await client.send(data)


async def test_a_crowd_of_requests_on_one_connection_keeps_nobody_waiting_long() -> None:
    """Thousands of small requests in one chunk are handled in slices."""
    names = [f"persistent://t/n/{number:05d}" for number in range(3000)]
    async with serving(MemoryLister(names)) as s, await s.client() as greedy, await s.client() as other:
        frames = [commands.get_topics(n, "t/n", topics_pattern=f"t/n/.*{n}.*") for n in range(500)]
        sending = asyncio.create_task(greedy.send(b"".join(frames)))
        first = await greedy.receive()
        assert first.getTopicsOfNamespaceResponse.request_id < 50
        await other.ping()  # in the midst of them
        answered = 1
        while answered < 500:
            await greedy.receive_raw()
            answered += 1
        await sending


async def test_long_requests_under_way_hold_bounded_memory() -> None:
    """A thousand patterns of a megabyte that wait for their answers."""
    source = MemoryLister(NAMES, at_once=False)
    source.gate.clear()
    async with serving(source) as s, await s.client() as client:
        frame = commands.get_topics(1, "t/n", topics_pattern="x" * MIB)
        for _ in range(70):
            await client.send(frame)
        refused = 0
        while refused < 7:  # 63 and a bit fit
            error = (await client.receive()).error
            assert (error.error, error.message) == (14, "Failed due to too many pending lookup requests")
            refused += 1
        assert 60 * MIB < s.server.load.buffered_bytes <= 64 * MIB
        async with await s.client() as other:  # small ones have their places
            source.at_once = True
            assert len((await other.ask("t/n")).topics) == len(NAMES)
        source.gate.set()
        for _ in range(63):
            assert len(RawClient.answer(await client.receive(), 1).topics) == len(NAMES)
