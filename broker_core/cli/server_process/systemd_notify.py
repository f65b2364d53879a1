"""Notification of systemd about the server's state (``sd_notify(3)``): one datagram a message.

``NOTIFY_SOCKET`` names the socket, of the file system or (with ``@``) an abstract one. Without it nothing is
sent.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Mapping, MutableMapping

import structlog

__all__ = ["ServiceManager"]

_log = structlog.get_logger(__name__)

_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class ServiceManager:
    """Sender of notifications to the service manager; never waits for it, and never fails."""

    def __init__(self, address: str | None = None, watchdog: float | None = None) -> None:
        """``address`` as in ``NOTIFY_SOCKET``; ``watchdog``: seconds within which it expects a message."""
        self._address = address
        #: Seconds between two watchdog messages; ``None``: systemd expects none.
        self.interval = None if watchdog is None or address is None else watchdog / 2

    @classmethod
    def of(cls, environment: MutableMapping[str, str]) -> ServiceManager:
        """The service manager of the environment. Its variables are removed: they are not for child processes."""
        own = {name: environment.pop(name) for name in _VARIABLES if name in environment}
        return cls(own.get("NOTIFY_SOCKET") or None, _watchdog(own))

    def ready(self, status: str) -> None:
        """Report that the start, or a reload, is done."""
        self._notify(READY="1", STATUS=status)

    def reloading(self) -> None:
        """Report that a reload begins; :meth:`ready` ends it."""
        self._notify(RELOADING="1", MONOTONIC_USEC=str(time.monotonic_ns() // 1000))

    def stopping(self, status: str) -> None:
        """Report that the end begins."""
        self._notify(STOPPING="1", STATUS=status)

    async def keep_alive(self) -> None:
        """Report, until cancelled, that the event loop runs; for a watchdog."""
        while self.interval is not None:
            self._notify(WATCHDOG="1")
            await asyncio.sleep(self.interval)

    def _notify(self, **state: str) -> None:
        if self._address is None:
            return
        # A line feed would begin another assignment.
        text = "\n".join(f"{name}={' '.join(value.split())}" for name, value in state.items())
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto(text.encode(), address)
        except OSError as error:
            _log.warning("the service manager cannot be notified", socket=self._address, error=str(error))


def _watchdog(variables: Mapping[str, str]) -> float | None:
    """Seconds of ``WATCHDOG_USEC``, if it is for this process."""
    wanted, process = variables.get("WATCHDOG_USEC", ""), variables.get("WATCHDOG_PID")
    if not wanted.isdecimal() or int(wanted) == 0 or process not in (None, str(os.getpid())):
        return None
    return int(wanted) / 1e6
