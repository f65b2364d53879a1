"""The ports of a gateway for the nodes of the cluster behind it, one for each node and listener."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import structlog

__all__ = ["Listen", "NodePorts"]

_log = structlog.get_logger(__name__)

#: Listens for clients of a node, by its id, at a port. Returns the function that ends it; :exc:`OSError` if the port is
#: taken.
Listen: TypeAlias = Callable[[int, int], Awaitable[Callable[[], None]]]


@dataclass(slots=True)
class _Door:
    """A listener: its ports by node, with the functions that end them."""

    host: str
    listen: Listen
    ports: dict[int, tuple[int, Callable[[], None]]] = field(default_factory=dict)


class NodePorts:
    """The ports from ``first`` to ``last``. A node keeps its port as long as it is there, and has it again after a
    restart of the gateway if no other node has.
    """

    def __init__(self, first: int, last: int) -> None:
        self._first = first
        self._count = last - first + 1
        self._doors: dict[bool, _Door] = {}
        self._wanted: list[int] = []

    async def add(self, host: str, listen: Listen, nodes: Iterable[int], *, tls: bool) -> list[int]:
        """Open ports for one more listener, whose clients get ``host``; returns the nodes that got none."""
        self._doors[tls] = _Door(host, listen)
        return await self.fit(nodes)

    async def fit(self, nodes: Iterable[int]) -> list[int]:
        """Open a port for each of these nodes, and for no others; returns the nodes that got none."""
        self._wanted = wanted = sorted(set(nodes))
        for door in self._doors.values():
            for gone in door.ports.keys() - set(wanted):
                door.ports.pop(gone)[1]()
        for number, door in enumerate(self._doors.values()):
            for node in wanted:
                if node not in door.ports:
                    await self._open(door, number, node)
        without = self.without()
        if without:
            _log.error(
                "clients cannot reach some nodes of the Kafka cluster, for which there is no port: widen "
                "kafka.upstream.ports, and restart",
                nodes=without,
                ports=f"{self._first}-{self._first + self._count - 1}",
            )
        return without

    def without(self, *, tls: bool | None = None) -> list[int]:
        """The nodes that have no port for clients of a listener; without ``tls``: of any listener."""
        doors = [door for key, door in self._doors.items() if tls in (None, key)]
        return [node for node in self._wanted if any(node not in door.ports for door in doors)]

    async def _open(self, door: _Door, number: int, node: int) -> None:
        """Open a free port for a node, if there is one."""
        first = node * len(self._doors) + number
        for step in range(self._count):
            port = self._first + (first + step) % self._count
            if any(port == taken for each in self._doors.values() for taken, _ in each.ports.values()):
                continue
            try:
                door.ports[node] = port, await door.listen(node, port)
            except OSError as error:
                _log.warning("a port for a node cannot be had", port=port, node=node, error=str(error))
            else:
                return

    def address(self, node: int, *, tls: bool) -> tuple[str, int] | None:
        """Host and port of a node for clients of a listener; ``None``: it has none."""
        door = self._doors.get(tls)
        if door is None or node not in door.ports:
            return None
        return door.host, door.ports[node][0]
