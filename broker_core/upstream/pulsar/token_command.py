"""Running the command that prints a token: bounded in time and output, without a shell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

from broker_core.client import CredentialsFailed

__all__ = ["run_token_command"]

_LARGEST: Final = 1024 * 1024  # bytes of output
_DYING: Final = 1.0  # seconds that a killed process has


class _Output(asyncio.SubprocessProtocol):
    """The output of a process, until it has ended and nobody has its output open, or until it is too much."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.printed = bytearray()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002  # asyncio's signature
        if len(self.printed) <= _LARGEST:
            self.printed += data
        elif not self.ended.done():
            self.ended.set_result(None)

    def process_exited(self) -> None:
        self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        if not self.ended.done():
            self.ended.set_result(None)


async def run_token_command(words: Sequence[str], *, timeout: float) -> bytes:
    """The output of the command, without the white space around.

    After ``timeout`` seconds, and if this is cancelled, the command and all that it started is killed. Raises
    :exc:`CredentialsFailed`, which shows none of the output. The command's standard error is dropped: it may have
    secrets.
    """
    name = words[0]
    starting = asyncio.create_task(
        asyncio.get_running_loop().subprocess_exec(
            _Output,
            *words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that all that it starts can be killed with it
        )
    )
    try:
        process, output = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # It may run already, and asyncio would kill it without what it has started; if its start is cancelled in turn,
        # asyncio may wait for it without an end.
        while not starting.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([starting])
        with contextlib.suppress(OSError, ValueError):
            await _kill(*starting.result())
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no command"
        raise CredentialsFailed(f"upstream.token_command: cannot run {name!r}: {reason}") from None
    try:
        async with asyncio.timeout(timeout):
            await output.ended
    except TimeoutError:
        raise CredentialsFailed(
            f"upstream.token_command: {name!r} did not come to its end within {timeout:g} s"
        ) from None
    finally:
        await _kill(process, output)
    if len(output.printed) > _LARGEST:
        raise CredentialsFailed(f"upstream.token_command: {name!r} printed more than {_LARGEST} bytes")
    status = process.get_returncode()
    if status:
        raise CredentialsFailed(f"upstream.token_command: {name!r} ended with status {status}")
    token = bytes(output.printed).strip()
    if not token:
        raise CredentialsFailed(f"upstream.token_command: {name!r} printed nothing")
    return token


async def _kill(process: asyncio.SubprocessTransport, output: _Output) -> None:
    """Kill the command, and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.get_pid(), signal.SIGKILL)
    try:
        await asyncio.wait([output.exited], timeout=_DYING)
    finally:
        process.close()
