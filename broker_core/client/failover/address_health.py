"""The states of the addresses of a service, and the pauses before a failed one is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from broker_core.concurrency import backoff, ended_within
from broker_core.service_addresses import Address, shown_address

__all__ = ["AddressHealth", "KnownAddress"]


@dataclass(slots=True)
class KnownAddress:
    """The results of the last attempts to connect to one address."""

    state: Literal["unknown", "up", "down"] = "unknown"
    failures: int = 0
    retry_at: float = 0.0
    reason: str = "not connected yet"


class AddressHealth:
    """The results of attempts to connect to each address.

    An address that failed is tried again after ``first_backoff`` seconds, then after twice as long each time, up to
    ``longest_backoff``; pauses are spread by half, so that clients do not come back together.
    """

    def __init__(self, addresses: Sequence[Address], *, first_backoff: float, longest_backoff: float) -> None:
        self.addresses = tuple(dict.fromkeys(addresses))
        self.known = {address: KnownAddress() for address in self.addresses}
        self.first_backoff = first_backoff
        self.longest_backoff = longest_backoff
        self._turn = 0
        self._news = (
            asyncio.Event()
        )  # set whenever an address may be tried earlier than it seemed, and replaced

    def is_down(self, address: Address) -> bool:
        """Whether the last attempt failed."""
        return self.known[address].state == "down"

    def retry_at(self, address: Address) -> float:
        """The loop's time from which on the address may be tried."""
        return self.known[address].retry_at

    def states(self) -> dict[str, str]:
        """``"unknown"``, ``"up"`` or ``"down"`` of each address."""
        return {shown_address(address): known.state for address, known in self.known.items()}

    @property
    def problem(self) -> str | None:
        """The reason why no address answers; ``None`` if one does."""
        if any(known.state == "up" for known in self.known.values()):
            return None
        return "; ".join(dict.fromkeys(known.reason for known in self.known.values()))

    def order(self) -> list[Address]:
        """The addresses that may be tried now, beginning with another one each time, the latest failures last."""
        now = asyncio.get_running_loop().time()
        due = [address for address in self.addresses if self.retry_at(address) <= now]
        due.sort(key=self.is_down)
        up = [address for address in due if not self.is_down(address)] or due
        self._turn += 1
        first = self._turn % len(up) if up else 0
        return up[first:] + up[:first] + [address for address in due if address not in up]

    async def until_due(self) -> None:
        """Wait until an address may be tried."""
        loop = asyncio.get_running_loop()
        while (pause := min(map(self.retry_at, self.addresses)) - loop.time()) > 0:
            if not await ended_within(pause, self.until_news()):
                return

    async def until_news(self) -> None:
        """Wait until an address may be tried earlier than planned."""
        await self._news.wait()

    def succeeded(self, address: Address) -> None:
        """Note that a server answered at an address."""
        known = self.known.get(address)
        if known is None:
            return
        known.state, known.failures, known.retry_at, known.reason = "up", 0, 0.0, ""
        news, self._news = self._news, asyncio.Event()
        news.set()

    def failed(self, address: Address, reason: str) -> None:
        """Note that an attempt to connect failed because of the address: no server, no TLS, no Pulsar."""
        known = self.known.get(address)
        if known is None:
            return
        known.state, known.reason = "down", reason
        known.failures += 1
        pause = backoff(known.failures, self.first_backoff, self.longest_backoff)
        known.retry_at = asyncio.get_running_loop().time() + pause
