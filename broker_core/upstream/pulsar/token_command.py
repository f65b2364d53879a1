"""Running the command that prints a token: bounded in time and output, without a shell."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO, Final

from broker_core.client import CredentialsFailed

__all__ = ["run_token_command"]

_LARGEST: Final = 1024 * 1024  # bytes of output


def run_token_command(words: Sequence[str], *, timeout: float) -> bytes:
    """What the command prints, without the white space around. Call it in a thread.

    ``timeout`` in seconds: then the command and all that it started is killed. Raises :exc:`CredentialsFailed`, which
    shows nothing of what was printed. What the command writes to its standard error goes nowhere: it may hold secrets.
    """
    name = words[0]
    try:
        process = subprocess.Popen(  # noqa: S603  # the operator's own command
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that all that it starts can be killed with it
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no command"
        raise CredentialsFailed(f"upstream.token_command: cannot run {name!r}: {reason}") from None
    assert process.stdout is not None
    by = time.monotonic() + timeout
    try:
        printed = _read(process.stdout, by)
        if len(printed) > _LARGEST:
            raise CredentialsFailed(f"upstream.token_command: {name!r} printed more than {_LARGEST} bytes")
        status = process.wait(max(0.001, by - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired):
        raise CredentialsFailed(
            f"upstream.token_command: {name!r} did not come to its end within {timeout:g} s"
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
    if status:
        raise CredentialsFailed(f"upstream.token_command: {name!r} ended with status {status}")
    token = printed.strip()
    if not token:
        raise CredentialsFailed(f"upstream.token_command: {name!r} printed nothing")
    return token


def _read(stream: IO[bytes], by: float) -> bytes:
    """All up to the end of the stream; more than ``_LARGEST`` bytes are not read."""
    parts: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while size <= _LARGEST:
            if not selector.select(max(0.0, by - time.monotonic())):
                raise TimeoutError
            part = os.read(stream.fileno(), 64 * 1024)
            if not part:
                break
            parts.append(part)
            size += len(part)
    return b"".join(parts)
