"""Which brokers of the service URL answer: their states, and the pauses before one that does not is tried again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import structlog

__all__ = ["Address", "AddressHealth", "shown"]

#: Host and port.
Address: TypeAlias = tuple[str, int]

_DOUBLINGS: Final = 16

_log = structlog.get_logger(__name__)


def shown(address: Address) -> str:
    """``HOST:PORT``, with brackets around an IPv6 host."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(slots=True)
class _Known:
    state: Literal["unknown", "up", "down"] = "unknown"
    failures: int = 0
    retry_at: float = 0.0
    reason: str = "not connected yet"


class AddressHealth:
    """What the attempts of the gateway itself to connect to each address came to.

    An address that failed is tried again after ``first_backoff`` seconds, then after twice as long each time, up to
    ``longest_backoff``; pauses are spread by half, so that gateways do not come back together.

    The attempts of a principal have a health of their own (:meth:`for_principal`), beside what the gateway knows.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        first_backoff: float,
        longest_backoff: float,
        gateway: AddressHealth | None = None,
    ) -> None:
        self.addresses = tuple(dict.fromkeys(addresses))
        self._gateway = gateway
        #: Set where a connection to the address broke, or could not be made: its watch looks again.
        self.doubt = {address: asyncio.Event() for address in self.addresses}
        self._known = {address: _Known() for address in self.addresses}
        self._first = first_backoff
        self._longest = longest_backoff
        self._turn = 0
        self._news = (
            asyncio.Event()
        )  # set whenever an address may be tried earlier than it seemed, and replaced

    def of(self, addresses: Sequence[Address]) -> AddressHealth:
        """The health of other addresses, with the same pauses: of the broker that a redirect names."""
        return AddressHealth(addresses, first_backoff=self._first, longest_backoff=self._longest)

    def for_principal(self) -> AddressHealth:
        """The health that the attempts of one principal know: an address may fail for what the principal is. So they
        make no address go down for all others, but its watch looks again; that they succeed is good for all.
        """
        return AddressHealth(
            self.addresses, first_backoff=self._first, longest_backoff=self._longest, gateway=self
        )

    def is_down(self, address: Address) -> bool:
        """Whether the last attempt failed."""
        return self._known[address].state == "down" or (
            self._gateway is not None and self._gateway.is_down(address)
        )

    def retry_at(self, address: Address) -> float:
        """The loop's time from which on the address may be tried."""
        own = self._known[address].retry_at
        return own if self._gateway is None else max(own, self._gateway.retry_at(address))

    def states(self) -> dict[str, str]:
        """``"unknown"``, ``"up"`` or ``"down"`` of each address."""
        return {shown(address): known.state for address, known in self._known.items()}

    @property
    def problem(self) -> str | None:
        """Why no address answers; ``None`` where one does."""
        if any(known.state == "up" for known in self._known.values()):
            return None
        return "; ".join(dict.fromkeys(known.reason for known in self._known.values()))

    def order(self) -> list[Address]:
        """The addresses to try: those that may be tried now, beginning with another one each time, the latest failures
        last.
        """
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
            try:
                async with asyncio.timeout(pause):
                    await self.until_news()
            except TimeoutError:
                return

    async def until_news(self) -> None:
        """Wait until an address may be tried earlier than it seemed."""
        await (self._news.wait() if self._gateway is None else self._gateway.until_news())

    async def until_due_again(self, address: Address) -> None:
        """Wait for the end of the pause of one address."""
        await asyncio.sleep(max(0.0, self._known[address].retry_at - asyncio.get_running_loop().time()))

    def succeeded(self, address: Address) -> None:
        """A broker answered there."""
        known = self._known.get(address)
        if known is None:
            return
        if self._gateway is not None:
            self._gateway.succeeded(address)
        elif known.state == "down":
            _log.info("upstream reachable again", address=shown(address), failures=known.failures)
        known.state, known.failures, known.retry_at, known.reason = "up", 0, 0.0, ""
        self._tell()

    def failed(self, address: Address, reason: str) -> None:
        """An attempt to connect failed for a reason of the address: nobody there, no TLS, no Pulsar."""
        known = self._known.get(address)
        if known is None:
            return
        quiet = self._gateway is not None or (known.state == "down" and known.reason == reason)
        known.state, known.reason = "down", reason
        known.failures += 1
        pause = min(self._longest, self._first * 2 ** min(known.failures - 1, _DOUBLINGS))
        pause *= random.uniform(0.5, 1.0)  # noqa: S311  # only spreads attempts
        known.retry_at = asyncio.get_running_loop().time() + pause
        (_log.debug if quiet else _log.warning)("upstream unreachable", address=shown(address), reason=reason)
        (self if self._gateway is None else self._gateway).doubt[address].set()

    def doubt_all(self) -> None:
        """Let the watch of each address look again."""
        for doubt in self.doubt.values():
            doubt.set()

    def untried(self, address: Address, reason: str) -> None:
        """There are no credentials to try it with."""
        known = self._known[address]
        if known.reason != reason:
            _log.warning("upstream not tried", address=shown(address), reason=reason)
        known.state, known.reason = "unknown", reason

    def lost(self, address: Address) -> None:
        """A connection to it broke: whether it is up is not known until the next attempt."""
        known = self._known.get(address)
        if known is not None and known.state == "up":
            known.state, known.reason = "unknown", "the connection was lost"

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
