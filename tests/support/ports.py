"""Free TCP ports of the loopback interface, for servers that cannot take port 0 themselves."""

from __future__ import annotations

import socket

__all__ = ["free_port", "free_ports"]


def free_ports(count: int) -> list[int]:
    """``count`` different ports that nobody listens on right now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def free_port() -> int:
    """One port that nobody listens on right now."""
    return free_ports(1)[0]
