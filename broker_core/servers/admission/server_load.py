"""The load of all connections of a server: requests under way, their tasks, and received bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from broker_core.servers.admission.request_slots import RequestSlots

__all__ = ["ServerLoad"]

#: All incomplete frames and long requests together, in bytes; requests are small, so that only an attack comes near.
_MAX_BUFFERED: Final = 64 * 1024 * 1024
#: Bytes of a command up to which it is not counted while it is under way; a longer one (its pattern may have megabytes)
#: counts together with the incomplete frames.
_SMALL_COMMAND: Final = 4096


class ServerLoad:
    """``concurrent_requests`` is how many requests may be under way at a time (0: any number)."""

    __slots__ = ("buffered_bytes", "connections", "make_room", "request_tasks", "slots")

    def __init__(self, concurrent_requests: int = 0) -> None:
        self.slots = RequestSlots(concurrent_requests)
        self.request_tasks: set[asyncio.Task[None]] = set()  # of the requests of all connections
        self.connections = 0
        self.buffered_bytes = 0
        #: Called if there is no room for a whole command of so many bytes: it may free some.
        self.make_room: Callable[[int], None] = lambda _size: None

    def hold(self, change: int) -> None:
        """A connection holds so many bytes more (or less) of frames that are incomplete, wait or are long."""
        self.buffered_bytes += change

    def hold_command(self, size: int) -> int:
        """Hold a command of ``size`` bytes while it is under way; returns its bytes that count: none of a small one."""
        held = size if size > _SMALL_COMMAND else 0
        self.buffered_bytes += held
        return held

    def has_room_for(self, size: int) -> bool:
        """Whether a command of ``size`` bytes may be held while it is under way; others may have to go for it."""
        if size <= _SMALL_COMMAND:
            return True
        if self.buffered_bytes + size > _MAX_BUFFERED:
            self.make_room(size)
        return self.buffered_bytes + size <= _MAX_BUFFERED

    def is_too_much(self, size: int) -> bool:
        """Whether a connection that holds ``size`` bytes has to go: all hold too much, and this one is a large part."""
        return self.buffered_bytes > _MAX_BUFFERED and size * self.connections >= self.buffered_bytes
