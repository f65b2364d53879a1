"""Resident memory of a server with greedy clients is bounded by the permits.

What is measured is the highest that the process ever had, far away from both bounds: what these scenes took before is
several times what they may take.
"""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from broker_core.errors import ServerError
from tests.support.eventually import eventually
from tests.support.raw_client import RawClient, Refused
from tests.support.served import Served

MB = 1024 * 1024
NAMES = 60_000
#: A list of these names takes about so much; up to eight calls of a plugin run at a time.
HELD_BY_PLUGIN = 8 * 7 * MB

PLUGIN = f"""
from broker_core import TopicListingResult, hookimpl

LOCAL = [f"orders-of-the-region-{{number:09d}}" for number in range({NAMES})]


@hookimpl
def broker_core_list_topics(request, namespace):
    names = [f"persistent://{{namespace}}/{{local}}" for local in LOCAL]
    version = "1" if namespace.tenant == "versions" else None
    return TopicListingResult.success(names, version=version)
"""


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    about = folder / "lists-1.dist-info"
    about.mkdir(parents=True)
    (folder / "lists.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lists\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[broker_core]\nlists = lists\n")
    return folder


def served(folder: Path, plugins: Path, **limits: str) -> Served:
    return Served(
        folder,
        {
            "http": {"listen": "127.0.0.1:0"},
            "limits": {**limits, "permit_timeout": "100s"},
            "catalog": {"path": str(folder / "c.sqlite")},
            "plugins": {"enabled": ["lists"], "lists": {"deadline": "120s"}},
        },
        python_path=plugins,
        fresh=True,  # its memory is measured
    )


def resident(server: Served, field: str) -> int:
    """``VmRSS`` or ``VmHWM`` (the highest ever), in bytes."""
    for line in Path(f"/proc/{server.pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise AssertionError(field)


def counted(server: Served, name: str) -> float:
    """The sum of a counter over all of its labels."""
    with urllib.request.urlopen(f"http://{server.ready['http']}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"broker_core_{name}"))


async def listed(client: RawClient, namespace: str) -> int:
    """The number of topics; repeated, some times, if the machine is too slow for the time of one listing."""
    for _ in range(20):
        try:
            return len((await client.ask(namespace)).topics)
        except Refused as refused:
            if refused.code is not ServerError.TooManyRequests:
                raise
    raise AssertionError(namespace)


async def growth(server: Served, ask: Callable[[], Awaitable[None]]) -> int:
    async with await RawClient.open(server.address) as first:
        await first.ping()
    before = resident(server, "VmRSS")
    await ask()
    return resident(server, "VmHWM") - before


async def test_many_lists_of_a_plugin_at_once(tmp_path: Path, plugins: Path) -> None:
    """Each of another namespace, so that nothing is known of any."""
    with served(
        tmp_path / "s", plugins, heap_permits="16MB", direct_permits="4MB", snapshots="16MB"
    ) as server:

        async def one(number: int) -> None:
            async with await RawClient.open(server.address, client_version="Pulsar-CPP-v3.5.1") as client:
                assert await listed(client, f"lists/n{number}") == NAMES

        async def ask() -> None:
            await asyncio.gather(*map(one, range(40)))

        assert await growth(server, ask) < (16 + 4 + 16 + 80) * MB + HELD_BY_PLUGIN


async def test_kept_answers_that_nobody_reads(tmp_path: Path, plugins: Path) -> None:
    """Kept answers are let go of while they are being sent, and are in memory all the same."""
    with served(
        tmp_path / "s", plugins, heap_permits="16MB", direct_permits="4MB", snapshots="32MB"
    ) as server:
        clients = []

        async def ask() -> None:
            for number in range(25):
                client = await RawClient.open(
                    server.address, client_version="Pulsar-CPP-v3.5.1", receive_buffer=65536
                )
                clients.append(client)
                _, question = client.question(f"versions/n{number}")
                await client.send(question)

            async def all_listed() -> bool:
                return await asyncio.to_thread(counted, server, "listing_requests_total") >= len(clients)

            await eventually(all_listed, timeout=600)

        assert await growth(server, ask) < (16 + 4 + 32 + 80) * MB + HELD_BY_PLUGIN
        for client in clients:
            client.close()
