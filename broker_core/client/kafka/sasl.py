"""Ways for a client to authenticate to a Kafka cluster: PLAIN, SCRAM or OAUTHBEARER, over SaslAuthenticate."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, Literal, TypeAlias

from broker_core.client.authentication import Source, Token, text_of
from broker_core.client.client_errors import ClientError, CredentialsFailed
from broker_core.client.kafka.kafka_errors import SaslAuthenticationException
from broker_core.kafka.scram import ScramClientExchange, ScramError

__all__ = ["OAuthBearer", "Plain", "Sasl", "SaslExchange", "Scram"]


class SaslExchange(ABC):
    """One authentication, without a connection."""

    @abstractmethod
    async def first(self) -> bytes:
        """The first message. Raises :exc:`~broker_core.client.CredentialsFailed`."""

    @abstractmethod
    async def next(self, answer: bytes) -> bytes | None:
        """The message after an answer of the server; ``None`` if the exchange is over.

        Raises :exc:`~.kafka_errors.SaslAuthenticationException`.
        """


class Plain:
    """A name and its password, as the mechanism PLAIN, which sends both: use TLS. ``password`` may be a function, or
    coroutine function, that gives it.
    """

    mechanism: Final = "PLAIN"

    def __init__(self, user: str, password: Source) -> None:
        self.user: Final = _without_nul(user)
        self._password: Final = password

    def exchange(self) -> SaslExchange:
        return _Plain(self.user, self._password)

    def __repr__(self) -> str:
        return f"Plain({self.user!r}, ...)"


class Scram:
    """A name and its password, as SCRAM (RFC 5802): the password is not sent, and the server must know it too."""

    def __init__(
        self,
        user: str,
        password: Source,
        *,
        mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512",
    ) -> None:
        if mechanism not in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            raise ValueError(f"{mechanism!r} is no mechanism of SCRAM: SCRAM-SHA-256 or SCRAM-SHA-512")
        self.user: Final = _without_nul(user)
        self.mechanism: Final = mechanism
        self._password: Final = password

    def exchange(self) -> SaslExchange:
        return _Scram(self.mechanism, self.user, self._password)

    def __repr__(self) -> str:
        return f"Scram({self.user!r}, ..., mechanism={self.mechanism!r})"


class OAuthBearer:
    """A token, as the mechanism OAUTHBEARER (RFC 7628): text, the path of a file, or a function or coroutine function
    that gives its text, as of :class:`~broker_core.client.Token`. It is asked for with each new connection.
    """

    mechanism: Final = "OAUTHBEARER"

    def __init__(self, token: Source | Path) -> None:
        self._token: Final = Token(token)

    def exchange(self) -> SaslExchange:
        return _OAuthBearer(self._token)

    def __repr__(self) -> str:
        return f"OAuthBearer({self._token!r})"


#: How a client may authenticate.
Sasl: TypeAlias = Plain | Scram | OAuthBearer


class _Plain(SaslExchange):
    """The exchange of PLAIN (RFC 4616)."""

    def __init__(self, user: str, password: Source) -> None:
        self._user = user
        self._password = password

    async def first(self) -> bytes:
        password = _without_nul(await _secret(self._password))
        return f"\0{self._user}\0{password}".encode()

    async def next(self, answer: bytes) -> bytes | None:  # noqa: ARG002 - it is empty
        return None


class _Scram(SaslExchange):
    def __init__(self, mechanism: str, user: str, password: Source) -> None:
        self._mechanism = mechanism
        self._user = user
        self._password = password
        self._exchange: ScramClientExchange | None = None
        self._is_proved = False

    async def first(self) -> bytes:
        password = await _secret(self._password)
        self._exchange = ScramClientExchange(self._mechanism, self._user, password)
        return self._exchange.first()

    async def next(self, answer: bytes) -> bytes | None:
        assert self._exchange is not None  # after `first`
        try:
            if not self._is_proved:
                self._is_proved = True
                return await asyncio.to_thread(self._exchange.final, answer)
            self._exchange.finish(answer)
        except ScramError as failed:
            raise SaslAuthenticationException(f"{self._mechanism}: {failed}") from None
        return None


class _OAuthBearer(SaslExchange):
    def __init__(self, token: Token) -> None:
        self._token = token
        self._problem: str | None = None

    async def first(self) -> bytes:
        token = await self._token.credentials.current()
        return b"n,,\x01auth=Bearer " + (token or b"") + b"\x01\x01"

    async def next(self, answer: bytes) -> bytes | None:
        if self._problem is not None:  # the server has to refuse by itself
            raise SaslAuthenticationException(f"the server does not take the token: {self._problem}")
        if not answer:
            return None
        self._problem = _status(answer)
        return b"\x01"


def _status(answer: bytes) -> str:
    """The reason of a server that refuses a token (RFC 7628)."""
    try:
        found = json.loads(answer[:10_000])
        return str(found["status"])[:200]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "no reason given"


async def _secret(source: Source) -> str:
    try:
        return await text_of(source)
    except ClientError:
        raise
    except Exception as failed:  # noqa: BLE001 - whatever its function raises
        raise CredentialsFailed(f"the function for the password failed: {type(failed).__name__}") from None


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise CredentialsFailed("a user or a password with a NUL cannot be sent")
    return text
