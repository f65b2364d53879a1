"""`broker-core top`: once for scripts, and live on a terminal that is a real one."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import termios
from pathlib import Path

import pytest

from broker_core.client import LookupSession
from tests.cli.conftest import Cli
from tests.support.api_serving import ApiServed, api_served
from tests.support.forked_programs import forked_program


async def asked(served: ApiServed) -> None:
    host, port = served.broker.pulsar_address
    async with LookupSession(f"pulsar://{host}:{port}") as session:
        for _ in range(5):
            await session.get_topics("public/default", pattern="public/default/o.*")


async def test_once_it_shows_totals(cli: Cli, tmp_path: Path) -> None:
    socket = tmp_path / "admin.sock"
    async with api_served(tmp_path, admin={"socket": str(socket)}) as served:
        await asked(served)

        async def said(*words: str) -> str:
            done = await asyncio.to_thread(cli, "top", "--once", *words, "--broker", f"unix:{socket}")
            assert done.code == 0, done.err
            return done.out

        shown = json.loads(await said("--format", "json"))
        assert shown["totals"]["listings"] == 5
        assert shown["namespaces"] == {"public/default": 5}
        assert shown["questions"][0]["pattern"] == "public/default/o.*"
        assert shown["memory"]["heap_limit"] == 100 * 1024**2
        text = await said()
        assert "listings 5" in text
        assert "public/default/o.*" in text


@pytest.mark.parametrize("key", ["interrupt", "q"])
async def test_live_it_draws_again_until_it_is_left(tmp_path: Path, key: str) -> None:
    socket = tmp_path / "admin.sock"
    async with api_served(tmp_path, admin={"socket": str(socket)}) as served:
        await asked(served)
        ours, theirs = pty.openpty()
        program = subprocess.Popen(  # noqa: ASYNC220 - it does not wait
            [
                forked_program("broker-core"),
                "top",
                "--interval",
                "0.5",
                "--broker",
                f"unix:{socket}",
            ],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "160", "LINES": "50"},
        )
        try:
            drawn = ""
            while drawn.count("per second:") < 2:  # each look but the first is of what came since
                drawn += (await asyncio.to_thread(os.read, ours, 65536)).decode(errors="replace")
            assert "in all: listings 5" in drawn
            if key == "q":
                os.write(ours, b"xq")
            else:
                program.send_signal(signal.SIGINT)
            assert await asyncio.to_thread(program.wait, 30) == 0
            assert termios.tcgetattr(theirs)[3] & termios.ECHO, "the terminal is as it was"
        finally:
            program.kill()
            program.wait()
            os.close(ours)
            os.close(theirs)


def test_without_a_terminal_it_is_said_what_to_do(cli: Cli) -> None:
    assert "--once" in cli("top", "--broker", "unix:/nowhere").failed(2)
    assert cli("top", "--format", "json", "--broker", "unix:/nowhere").code == 2
