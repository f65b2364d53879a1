"""Checks that a Spark server listens at an address. Spark's own clients try for minutes."""

from __future__ import annotations

import socket
from typing import Final
from urllib.parse import urlsplit

from broker_core_spark.batch.build_errors import SessionFailed

__all__ = ["check_server", "shown_master"]

_SECONDS: Final = 10.0  # for each step
_CONNECT_PORT: Final = 15002
_STANDALONE_PORT: Final = 7077


def check_server(master: str, seconds: float = _SECONDS) -> None:
    """Raise :exc:`SessionFailed` unless a server answers at ``sc://...``, or one listens at one of ``spark://A,B``.

    Other masters are not asked.
    """
    if master.startswith("sc://"):
        _check_connect(master, seconds)
    elif master.startswith("spark://"):
        failed: list[SessionFailed] = []
        for address in master.removeprefix("spark://").split(","):
            try:
                _check_listens(f"spark://{address}", address, _STANDALONE_PORT, seconds)
                return
            except SessionFailed as error:
                failed.append(error)
        raise failed[0]


def shown_master(master: str) -> str:
    """The address without its parameters, which may have a token."""
    return master.partition("/;")[0]


def _check_connect(master: str, seconds: float) -> None:
    import grpc

    shown, parts = shown_master(master), urlsplit(master)
    place = _check_listens(shown, parts.netloc, _CONNECT_PORT, seconds)
    if "use_ssl=true" in parts.path.lower() or "token=" in parts.path.lower():
        channel = grpc.secure_channel(place, grpc.ssl_channel_credentials())
    else:
        channel = grpc.insecure_channel(place)
    with channel:
        try:
            grpc.channel_ready_future(channel).result(seconds)
        except grpc.FutureTimeoutError as error:
            raise SessionFailed(
                f"No Spark Connect server answers at {shown}: it takes connections, and does not speak gRPC"
            ) from error


def _check_listens(shown: str, address: str, port: int, seconds: float) -> str:
    """The host and the port of an address, once something takes a connection there."""
    try:
        parts = urlsplit(f"//{address}")
        if not parts.hostname:
            raise ValueError("no host")
        port = parts.port or port
    except ValueError as error:
        raise SessionFailed(f"{shown}: no address of a Spark server") from error
    try:
        socket.create_connection((parts.hostname, port), seconds).close()
    except OSError as error:
        raise SessionFailed(f"No Spark server answers at {shown}: {error.strerror or error}") from error
    return f"{parts.netloc.rpartition(':')[0] if parts.port else parts.netloc}:{port}"
