"""The errors of opening a connection, as errors of the client."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from broker_core.client.client_errors import (
    ClientError,
    ConnectionLost,
    InvalidServiceUrl,
    TlsCutShort,
    TlsFailed,
    UnexpectedAnswer,
)

__all__ = ["connect_failure", "opening_errors", "other_protocol", "tls_failure"]

_NUMBER: Final = re.compile(r"\[Errno (\d+)\]")
_TLS_ALERT: Final = b"\x15\x03"  # how a server that expects TLS answers plain bytes


def other_protocol(shown: str, first: bytes, *, tls: str, http: str) -> ClientError | None:
    """The error of a server whose first answer begins with ``first``, if that is TLS or HTTP, with advice."""
    if first[:2] == _TLS_ALERT:
        return TlsFailed(f"{shown} speaks TLS only: {tls}")
    if first[:4] == b"HTTP":
        return UnexpectedAnswer(f"{shown} speaks HTTP: {http}")
    return None


@contextmanager
def opening_errors(shown: str, *, is_tls: bool) -> Iterator[None]:
    """A block that connects a socket to the address ``shown``.

    Raises :exc:`ConnectionLost`, :exc:`TlsFailed` (:exc:`TlsCutShort`) or :exc:`InvalidServiceUrl`.
    """
    try:
        yield
    except ssl.SSLError as failed:
        raise TlsFailed(tls_failure(failed, shown)) from None
    except (ConnectionResetError, ConnectionAbortedError):
        if not is_tls:
            raise ConnectionLost(f"{shown} closed the connection at once") from None
        raise TlsCutShort(
            f"{shown} closed the connection in the TLS handshake: it may speak no TLS"
        ) from None
    except UnicodeError:  # of IDNA, to which the host is no name
        raise InvalidServiceUrl(f"the host of {shown} is no name") from None
    except OSError as refused:
        raise ConnectionLost(connect_failure(refused, shown)) from None


def connect_failure(refused: OSError, shown: str) -> str:
    """The text of a socket that is not connected to the address ``shown``, in the system's words: asyncio's have the
    address once more, and are a list of exceptions if a host has several.
    """
    numbers = [refused.errno] if refused.errno else [int(each) for each in _NUMBER.findall(str(refused))]
    words = dict.fromkeys(os.strerror(number) for number in numbers if number > 0)
    return f"cannot connect to {shown}: {', '.join(words) or refused.strerror or refused}"


def tls_failure(failed: Exception, shown: str) -> str:
    """The text of an error of TLS with the address ``shown``; :mod:`aiohttp` declares it as of any class."""
    if isinstance(failed, ssl.SSLCertVerificationError):
        return f"the certificate of {shown} is not accepted: {failed.verify_message}"
    reason = getattr(failed, "reason", None)
    if reason == "WRONG_VERSION_NUMBER":
        return f"{shown} speaks no TLS"
    return f"TLS with {shown} failed: {reason or failed}"
