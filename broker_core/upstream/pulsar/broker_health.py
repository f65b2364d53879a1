"""The health of the brokers of the service URL, by the attempts of the gateway and of its principals."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from broker_core.client.failover import AddressHealth
from broker_core.service_addresses import Address, shown_address

__all__ = ["BrokerHealth"]

_log = structlog.get_logger(__name__)


class BrokerHealth(AddressHealth):
    """The results of the gateway's own attempts to connect to each broker; they are logged.

    The attempts of a principal have a health of their own (:meth:`for_principal`), beside the gateway's.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        first_backoff: float,
        longest_backoff: float,
        gateway: BrokerHealth | None = None,
    ) -> None:
        super().__init__(addresses, first_backoff=first_backoff, longest_backoff=longest_backoff)
        self._gateway = gateway
        #: An event that is set if a connection to the address broke, or could not be made: its watch looks again.
        self.doubt = {address: asyncio.Event() for address in self.addresses}

    def of(self, addresses: Sequence[Address]) -> BrokerHealth:
        """The health of further addresses, with the same pauses: of the broker that a redirect names."""
        return BrokerHealth(addresses, first_backoff=self.first_backoff, longest_backoff=self.longest_backoff)

    def for_principal(self) -> BrokerHealth:
        """The health by the attempts of one principal: an address may fail because of the principal. So its failures
        make no address go down for others, but the watch looks again; its successes count for all.
        """
        return BrokerHealth(
            self.addresses,
            first_backoff=self.first_backoff,
            longest_backoff=self.longest_backoff,
            gateway=self,
        )

    def is_down(self, address: Address) -> bool:
        return super().is_down(address) or (self._gateway is not None and self._gateway.is_down(address))

    def retry_at(self, address: Address) -> float:
        own = super().retry_at(address)
        return own if self._gateway is None else max(own, self._gateway.retry_at(address))

    async def until_news(self) -> None:
        await (super().until_news() if self._gateway is None else self._gateway.until_news())

    async def until_due_again(self, address: Address) -> None:
        """Wait for the end of the pause of one address."""
        await asyncio.sleep(max(0.0, self.known[address].retry_at - asyncio.get_running_loop().time()))

    def succeeded(self, address: Address) -> None:
        known = self.known.get(address)
        if self._gateway is not None:
            self._gateway.succeeded(address)
        elif known is not None and known.state == "down":
            _log.info("upstream reachable again", address=shown_address(address), failures=known.failures)
        super().succeeded(address)

    def failed(self, address: Address, reason: str) -> None:
        known = self.known.get(address)
        if known is None:
            return
        quiet = self._gateway is not None or (known.state == "down" and known.reason == reason)
        super().failed(address, reason)
        (_log.debug if quiet else _log.warning)(
            "upstream unreachable", address=shown_address(address), reason=reason
        )
        (self if self._gateway is None else self._gateway).doubt[address].set()

    def doubt_all(self) -> None:
        """Let the watch of each address look again."""
        for doubt in self.doubt.values():
            doubt.set()

    def untried(self, address: Address, reason: str) -> None:
        """Note that there are no credentials to try an address with."""
        known = self.known[address]
        if known.reason != reason:
            _log.warning("upstream not tried", address=shown_address(address), reason=reason)
        known.state, known.reason = "unknown", reason

    def lost(self, address: Address) -> None:
        """Note that a connection to an address broke: whether it is up is unknown until the next attempt."""
        known = self.known.get(address)
        if known is not None and known.state == "up":
            known.state, known.reason = "unknown", "the connection was lost"
