"""Whether somebody listens at the address of a Spark server. Spark's own clients try for ten minutes."""

from __future__ import annotations

import socket
import struct
from typing import Final
from urllib.parse import urlsplit

from broker_core_spark.batch.build_errors import SessionFailed

__all__ = ["check_server"]

_SECONDS: Final = 10.0  # for each step
_CONNECT_PORT: Final = 15002
_STANDALONE_PORT: Final = 7077
#: How a client begins HTTP/2: the preface, and a frame of settings. A server answers with a frame of its own settings.
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
_SETTINGS_FRAME: Final = 4
#: A request for a file that no standalone master has, as a frame of Spark's RPC: its length, the kind 6, the name. A
#: master says that there is none, with ``spark.authenticate`` too.
_FILE: Final = b"/files/none"
_FILE_REQUEST: Final = struct.pack(">qbi", 8 + 1 + 4 + len(_FILE), 6, len(_FILE)) + _FILE


def check_server(master: str, seconds: float = _SECONDS) -> None:
    """Raise :exc:`SessionFailed` unless a server answers at ``sc://...``, or at one of ``spark://A,B``.

    Other masters are not asked.
    """
    if master.startswith("sc://"):
        parts = urlsplit(master)
        parameters = parts.path.lower()
        host, port = _host_and_port(master, parts.netloc, _CONNECT_PORT)
        with _connected(master, host, port, seconds) as connection:
            if "use_ssl=true" not in parameters and "token=" not in parameters:
                _check_answer(master, connection)
    elif master.startswith("spark://"):
        failed: list[SessionFailed] = []
        addresses = master.removeprefix("spark://").split(",")
        for address in addresses:
            shown = f"spark://{address}"
            try:
                host, port = _host_and_port(master, address, _STANDALONE_PORT)
                with _connected(shown, host, port, seconds) as connection:
                    _check_master(shown, connection)
                return
            except SessionFailed as error:
                failed.append(error)
        raise failed[0]


def _host_and_port(master: str, address: str, default: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{address}")
        if parts.hostname:
            return parts.hostname, parts.port or default
    except ValueError:
        pass
    raise SessionFailed(f"{master}: no address of a Spark server")


def _connected(shown: str, host: str, port: int, seconds: float) -> socket.socket:
    try:
        connection = socket.create_connection((host, port), seconds)
        connection.settimeout(seconds)
    except OSError as error:
        said = error.strerror or str(error)
        raise SessionFailed(f"No Spark server answers at {_shown(shown)}: {said}") from error
    return connection


def _check_answer(master: str, connection: socket.socket) -> None:
    try:
        connection.sendall(_PREFACE)
        answer = b""
        while len(answer) < 4:
            more = connection.recv(64)
            if not more:
                break
            answer += more
    except OSError as error:
        said = error.strerror or str(error)
        raise SessionFailed(
            f"No Spark server answers at {_shown(master)}: it takes connections: {said}"
        ) from error
    if len(answer) < 4 or answer[3] != _SETTINGS_FRAME:
        raise SessionFailed(f"What answers at {_shown(master)} is no Spark Connect server")


def _check_master(shown: str, connection: socket.socket) -> None:
    """Raise for a server that says nothing, or speaks HTTP. One with TLS may end the connection."""
    try:
        connection.sendall(_FILE_REQUEST)
        answer = connection.recv(64)
    except TimeoutError as error:
        raise SessionFailed(f"No Spark server answers at {shown}: it takes connections: {error}") from error
    except OSError:
        return
    if answer.startswith(b"HTTP/"):
        raise SessionFailed(f"What answers at {shown} is no Spark master: is it the port of its web pages?")


def _shown(master: str) -> str:
    """The address without its parameters, which may have a token."""
    return master.partition("/;")[0]
