"""The command that prints a token: what it may do wrong, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from broker_core.client import CredentialsFailed
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar.broker_credentials import own_token
from broker_core.upstream.pulsar.token_command import run_token_command
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually, eventually_sync, turns


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def test_what_it_prints_is_the_token() -> None:
    assert await run_token_command(python("print('  eyJtoken ')"), timeout=60) == b"eyJtoken"


async def test_no_shell_sees_the_words() -> None:
    assert await run_token_command(["echo", "$HOME;", "*"], timeout=60) == b"$HOME; *"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["/does/not/exist"], "cannot run '/does/not/exist': No such file or directory"),
        (["a\0b"], "it is no command"),
        (python("print('secret'); raise SystemExit(3)"), "ended with status 3"),
        (python(""), "printed nothing"),
        (python("print('secret' * 300_000)"), "printed more than 1048576 bytes"),
    ],
)
async def test_what_goes_wrong_is_said_without_its_output(words: list[str], reason: str) -> None:
    with pytest.raises(CredentialsFailed, match=reason) as failed:
        await run_token_command(words, timeout=60)
    assert "secret" not in str(failed.value).replace("'secret'", "")


# Its child keeps the output open, which the death of the command alone would not end.
WITH_CHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
open({told!r} + '.new', 'w').write(f'{{os.getpid()}} {{child.pid}}')
os.rename({told!r} + '.new', {told!r})
time.sleep(600)
"""


async def test_all_that_it_started_is_killed_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "pids"
    running = asyncio.create_task(run_token_command(python(WITH_CHILD.format(told=str(told))), timeout=AGES))
    await eventually(told.exists)
    for _ in range(20):  # the command may be quicker than the event loop that has started it
        await asyncio.sleep(0)
    time_passes(monkeypatch, 2 * AGES)
    with pytest.raises(CredentialsFailed, match="did not come to its end within 3600"):
        await running
    await eventually(lambda: not any(map(_runs, map(int, told.read_text().split()))), what="they are gone")


async def test_all_of_it_is_killed_when_it_is_not_waited_for(tmp_path: Path) -> None:
    told = tmp_path / "pids"
    own = own_token(
        UpstreamSettings(
            service_url="pulsar://a", token_command=tuple(python(WITH_CHILD.format(told=str(told))))
        )
    )
    assert own is not None
    waiting = asyncio.create_task(own.current())
    await eventually(told.exists)
    waiting.cancel()
    threads = threading.active_count()
    await own.stop()
    await eventually(lambda: not any(map(_runs, map(int, told.read_text().split()))), what="they are gone")
    assert threading.active_count() <= threads
    await own.stop()


async def test_all_of_it_is_killed_when_it_is_not_waited_for_while_it_is_started(tmp_path: Path) -> None:
    """A command may be quicker than the event loop that starts it."""
    told = tmp_path / "pids"
    command = python(WITH_CHILD.format(told=str(told)))
    running = asyncio.create_task(run_token_command(command, timeout=AGES))
    await turns(2)
    eventually_sync(told.exists)
    running.cancel()
    await turns(1)
    running.cancel()  # as by a stop that is not waited for either
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually(lambda: not any(map(_runs, map(int, told.read_text().split()))), what="they are gone")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
