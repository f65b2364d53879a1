"""The gateway's own token: from a file or a variable, which are read each time, or from a command, which is kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from broker_core.client import CredentialsFailed, single_token
from broker_core.concurrency import TasksByKey
from broker_core.upstream.pulsar.token_expiry import expiry_of

__all__ = ["CommandToken", "OwnToken", "SourceToken"]

_READING: Final = 3.0  # seconds that a file has, fewer than an attempt to connect
_EARLY: Final = 30.0  # seconds before its end a token counts as expired
_AGAIN: Final = 5.0  # seconds between two runs of the command, at least


class SourceToken:
    """Token of a source that is read anew for each use.

    ``read`` gives the token, in a thread; it is called each time, but never twice at once, since it may hang for
    ever.
    """

    def __init__(self, read: Callable[[], bytes], setting: str = "upstream.token") -> None:
        self._read = read
        self._setting = setting
        self._readings: TasksByKey[bytes] = TasksByKey()

    async def current(self) -> bytes:
        """The token that its source has now. Raises :exc:`~broker_core.client.CredentialsFailed`."""
        try:
            async with asyncio.timeout(_READING):
                token = await self._readings.result(None, partial(asyncio.to_thread, self._read))
        except TimeoutError:
            raise CredentialsFailed(f"{self._setting}: not read within {_READING:g} s") from None
        except OSError as error:
            raise CredentialsFailed(
                f"{self._setting}: cannot read {error.filename}: {error.strerror}"
            ) from None
        except ValueError as error:
            raise CredentialsFailed(f"{self._setting}: {error}") from None
        return single_token(token, self._setting)

    async def after_refusal(self, refused: bytes) -> bool:
        """Whether its source has another token meanwhile."""
        return await self.current() != refused

    async def stop(self) -> None:
        """End running reads of the source."""
        await self._readings.close()


class CommandToken:
    """Token of a command, kept for further uses.

    ``run`` gives the token; it is kept until it expires or is refused.

    One run at a time, for all that wait for it, and no two within 5 seconds: a token that brokers refuse for ever
    must not run the command for ever. A failed run leaves a token that has not expired in use.
    """

    def __init__(
        self,
        run: Callable[[], Awaitable[bytes]],
        setting: str = "upstream.token_command",
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._run = run
        self._setting = setting
        self._now = now
        self._token: bytes | None = None
        self._expires: float | None = None
        self._failure: CredentialsFailed | None = None
        self._ran_at = float("-inf")  # on the loop's clock
        self._runs: TasksByKey[None] = TasksByKey()

    async def current(self) -> bytes:
        """The kept token, or a new one. Raises :exc:`~broker_core.client.CredentialsFailed`."""
        if self._token is None or self._is_old(_EARLY):
            await self._runs.result(None, self._renew)
        if self._token is None or self._is_old(0):
            raise self._failure or CredentialsFailed(f"{self._setting}: the token that it gave has expired")
        return self._token

    async def after_refusal(self, refused: bytes) -> bool:
        """Run the command for another token, unless there is one."""
        if self._token == refused:
            await self._runs.result(None, self._renew)
        return self._token is not None and self._token != refused

    async def stop(self) -> None:
        """End the run of the command, if there is one."""
        await self._runs.close()

    def _is_old(self, early: float) -> bool:
        return self._expires is not None and self._now() > self._expires - early

    async def _renew(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._ran_at < _AGAIN:
            return
        try:
            self._token = single_token(await self._run(), self._setting)
            self._expires = expiry_of(self._token)
            self._failure = None
        except CredentialsFailed as failed:
            self._failure = failed
        finally:
            self._ran_at = loop.time()


#: The source of the gateway's own token, for every new connection and every challenge.
OwnToken: TypeAlias = SourceToken | CommandToken
