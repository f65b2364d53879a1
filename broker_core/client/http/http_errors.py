"""Errors of HTTP as errors of the client, with the codes of the binary protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

import aiohttp

from broker_core.client.client_errors import (
    ClientError,
    ConnectionLost,
    ConnectTimeout,
    HandshakeRefused,
    ServerRefused,
    TlsFailed,
    UnexpectedAnswer,
)
from broker_core.client.opening_errors import connect_failure, tls_failure
from broker_core.errors import Cause, ServerError

__all__ = ["connection_error", "is_reason", "json_object", "refusal", "wants_unfiltered"]

#: Codes of answers without a cause, such as a broker's.
_CODES: Final[Mapping[int, ServerError]] = MappingProxyType(
    {
        400: ServerError.NotAllowedError,
        401: ServerError.AuthenticationError,
        403: ServerError.AuthorizationError,
        404: ServerError.TopicNotFound,
        405: ServerError.NotAllowedError,
        412: ServerError.InvalidTopicName,
        413: ServerError.NotAllowedError,
        429: ServerError.TooManyRequests,
        # Of a proxy whose server is away.
        502: ServerError.ServiceNotReady,
        503: ServerError.ServiceNotReady,
        504: ServerError.ServiceNotReady,
    }
)
_LONGEST: Final = 300  # characters of a text that is no JSON


def refusal(status: int, body: bytes) -> ServerRefused:
    """The error of a response: problem details of this server, a broker's ``reason``, or any other text."""
    said = json_object(body) or {}
    cause = said.get("cause")
    code = (
        Cause[cause].pulsar
        if isinstance(cause, str) and cause in Cause.__members__
        else _CODES.get(status, ServerError.MetadataError)
    )
    text = said.get("detail") or said.get("reason")
    if not isinstance(text, str):
        text = f"{status} {_phrase(status)}"
    kind = HandshakeRefused if status == 401 else ServerRefused
    return kind(code, text[:_LONGEST], said)


def is_reason(body: bytes) -> bool:
    """Whether the body of an error is a broker's, ``{"reason": ...}``."""
    return isinstance((json_object(body) or {}).get("reason"), str)


def wants_unfiltered(body: bytes) -> bool:
    """Whether the body of an error says that the client has to ask for all topics, and apply the pattern."""
    return (json_object(body) or {}).get("retry_with") == "unfiltered=true"


def connection_error(failed: Exception, shown: str) -> ClientError:
    """The error of a request to ``shown`` (host and port) that got no response."""
    if isinstance(failed, aiohttp.ClientConnectorCertificateError):
        return TlsFailed(tls_failure(failed.certificate_error, shown))
    if isinstance(failed, aiohttp.ClientConnectorSSLError):
        return TlsFailed(tls_failure(failed.os_error, shown))
    if isinstance(failed, aiohttp.ClientConnectorError):
        return ConnectionLost(connect_failure(failed.os_error, shown))
    if isinstance(failed, TimeoutError):
        return ConnectTimeout(f"{shown} did not answer in time")
    if isinstance(failed, aiohttp.ServerDisconnectedError):
        return ConnectionLost(
            f"{shown} closed the connection without an answer: it may speak another protocol than HTTP"
        )
    if isinstance(failed, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError):
        return ConnectionLost(f"lost the connection to {shown}: {failed}")
    if isinstance(
        failed, aiohttp.ClientResponseError
    ):  # its text is the malformed response, in several lines
        if r"b'\x15\x03" in failed.message:
            return TlsFailed(f"{shown} speaks TLS only: the URL of its HTTP port is https://")
        return UnexpectedAnswer(f"{shown} answered what is no HTTP: it speaks another protocol")
    return UnexpectedAnswer(f"{shown} answered what is no HTTP: {failed}")


def json_object(body: bytes) -> dict[str, Any] | None:
    """The JSON object in a body; ``None`` if it is none."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
