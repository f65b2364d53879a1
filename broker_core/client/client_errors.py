"""Errors of questions to a lookup service.

ClientError
|-- InvalidServiceUrl      a service URL that does not parse
|-- InvalidQuestion        a question that cannot be sent
|-- ConnectionLost         no connection, or it broke before the answer came
|   |-- ConnectTimeout     no connection within the time for it
|   |-- CredentialsFailed  no credentials to connect with
|   |-- TlsFailed          no connection by TLS: a certificate that is not trusted, a file that cannot be used
|       |-- TlsCutShort    the same: the server closed the connection in the middle of it
|-- OperationTimeout       no answer in time
|-- UnexpectedAnswer       an answer that breaks the protocol or does not fit its question
|-- ServerRefused          the server answered with an error; ``code`` says which
    |-- HandshakeRefused   the same, about the connection: no request was looked at
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Self

from broker_core.errors import BrokerCoreError, ServerError

__all__ = [
    "ClientError",
    "ConnectTimeout",
    "ConnectionLost",
    "CredentialsFailed",
    "HandshakeRefused",
    "InvalidQuestion",
    "InvalidServiceUrl",
    "OperationTimeout",
    "ServerRefused",
    "TlsCutShort",
    "TlsFailed",
    "UnexpectedAnswer",
    "is_of_identity",
    "is_passing",
    "server_error",
]

#: Refusals of an identity; any other refusal of a connection is due to the server's state.
_OF_IDENTITY: Final = (ServerError.AuthenticationError, ServerError.AuthorizationError)
#: Refusals that pass.
_PASSING: Final = (ServerError.ServiceNotReady, ServerError.TooManyRequests)


class ClientError(BrokerCoreError):
    """Any failure of the lookup client."""

    def copy(self) -> Self:
        """This error for one more waiting caller: each gets a traceback of its own."""
        return type(self)(str(self))


class InvalidServiceUrl(ClientError, ValueError):
    """A service URL does not parse; the message says what is wrong with it."""


class InvalidQuestion(ClientError, ValueError):
    """A question that cannot be sent to this server, or to any; the message says why."""


class ConnectionLost(ClientError):
    """No connection, or it broke while an answer was awaited; asking again may succeed."""


class ConnectTimeout(ConnectionLost):
    """No connection in time: nobody answers, or the handshake does not end."""


class CredentialsFailed(ConnectionLost):
    """No credentials to connect with: their source failed. The message does not show them."""


class TlsFailed(ConnectionLost):
    """No connection by TLS: the server's certificate is not trusted or of another host, the server speaks no TLS or
    refuses the client's certificate, or a file of the client's cannot be used.
    """


class TlsCutShort(TlsFailed):
    """The server closed the connection during the TLS handshake, or right after it: it may end just now."""


class OperationTimeout(ClientError):
    """The server did not answer within the operation's time-out."""


class UnexpectedAnswer(ClientError):
    """The server's answer breaks the protocol, or does not fit the question."""


class ServerRefused(ClientError):
    """The server answered with an error: ``code`` of the protocol's enum, and its ``message``.

    Of an error of the HTTP API ``problem`` has all members, such as the ``error`` with the ``offset`` in a pattern; it
    is empty for other protocols.
    """

    def __init__(
        self, code: ServerError, message: str, problem: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.message = message
        self.problem = problem

    def copy(self) -> Self:
        return type(self)(self.code, self.message, self.problem)


class HandshakeRefused(ServerRefused):
    """The server refused the connection itself, as for missing credentials."""


def server_error(number: int, message: str) -> tuple[ServerError, str]:
    """Code and text of an error as a server sent it; an unknown number is UnknownError, and named in the text."""
    try:
        return ServerError(number), message
    except ValueError:
        return ServerError.UnknownError, f"{message} (unknown error code {number})".lstrip()


def is_of_identity(failed: ClientError) -> bool:
    """Whether an attempt to connect failed because of the identity, and not the address."""
    if isinstance(failed, HandshakeRefused):
        return failed.code in _OF_IDENTITY
    return isinstance(failed, CredentialsFailed)


def is_passing(failed: ClientError) -> bool:
    """Whether the question may have an answer a little later: the connection broke, or the server has no room or is not
    ready.
    """
    if isinstance(failed, ServerRefused):
        return failed.code in _PASSING
    if isinstance(failed, TlsFailed):
        return isinstance(failed, TlsCutShort)
    return isinstance(failed, ConnectionLost) and not isinstance(failed, CredentialsFailed)
