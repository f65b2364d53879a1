"""Asks the addresses of a service in turn. If one is silent, the next one is asked beside it.

Over HTTP nothing but an answer distinguishes a server that works from one that hangs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from broker_core.client.client_errors import ConnectionLost, CredentialsFailed
from broker_core.client.failover import AddressHealth
from broker_core.service_addresses import Address, shown_address

__all__ = ["AddressTurns"]

T = TypeVar("T")

_PATIENCE: Final = 1.0  # seconds, with an address that has not answered last time


class AddressTurns:
    """The turns of one service, for one event loop. ``patience``: the seconds of silence after which another address is
    asked beside one that answered last time.
    """

    def __init__(self, health: AddressHealth, *, patience: float) -> None:
        self._health = health
        self._patience = patience
        self._received_at = dict.fromkeys(health.addresses, 0.0)  # on the loop's clock, of any question

    def received(self, address: Address) -> None:
        """Note that data came from an address: it does not hang, however long a question takes."""
        if address in self._received_at:
            self._received_at[address] = asyncio.get_running_loop().time()

    async def ask(self, ask: Callable[[Address], Coroutine[Any, Any, T]]) -> T:
        """The result of ``ask`` for the first address that answers at all. Raises
        :exc:`~broker_core.client.ConnectionLost` if none does, and any other error of ``ask``.
        """
        await self._health.until_due()
        loop = asyncio.get_running_loop()
        running: dict[asyncio.Task[T], Address] = {}
        began: dict[Address, float] = {}
        failure: ConnectionLost | None = None
        try:
            while True:
                if all(self._is_silent(address, began[address]) for address in running.values()):
                    due = [address for address in self._health.order() if address not in began]
                    if due:
                        began[due[0]] = loop.time()
                        running[loop.create_task(ask(due[0]))] = due[0]
                    elif not running:
                        raise failure or ConnectionLost("no address may be tried now")
                patience = self._next_look(running, began)
                done, _ = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    address = running.pop(task)
                    try:
                        found = task.result()
                    except CredentialsFailed:
                        raise
                    except ConnectionLost as failed:
                        self._health.failed(address, str(failed))
                        failure = failed
                    else:
                        self._health.succeeded(address)
                        return found
        finally:
            self._give_up(running, began)
            await asyncio.gather(*running, return_exceptions=True)

    def _next_look(
        self, running: dict[asyncio.Task[T], Address], began: dict[Address, float]
    ) -> float | None:
        """Seconds until another address may be asked; ``None`` if there is none."""
        if len(began) == len(self._received_at):
            return None
        now = asyncio.get_running_loop().time()
        silent_at = max(
            max(began[address], self._received_at[address]) + self._patience_with(address)
            for address in running.values()
        )
        due_at = min(self._health.retry_at(address) for address in self._received_at if address not in began)
        return max(0.001, silent_at - now, due_at - now)

    def _give_up(self, running: dict[asyncio.Task[T], Address], began: dict[Address, float]) -> None:
        for task, address in running.items():
            task.cancel()
            # One that is down already gets no longer pause by each question that was under way.
            if (
                len(self._received_at) > 1
                and self._is_silent(address, began[address])
                and not self._health.is_down(address)
            ):
                self._health.failed(address, f"{shown_address(address)} does not answer")

    def _is_silent(self, address: Address, since: float) -> bool:
        silence = asyncio.get_running_loop().time() - max(since, self._received_at[address])
        return silence >= self._patience_with(address)

    def _patience_with(self, address: Address) -> float:
        return self._patience if self._health.known[address].state == "up" else _PATIENCE
