"""Ways for a client to authenticate to a Kafka cluster: PLAIN, SCRAM or OAUTHBEARER, over SaslAuthenticate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final, Literal, TypeAlias

from broker_core.client.authentication import Source, Token, text_of
from broker_core.client.client_errors import ClientError, CredentialsFailed
from broker_core.client.kafka.kafka_errors import SaslAuthenticationException
from broker_core.kafka.scram import ScramClientExchange, ScramError

__all__ = ["OAuthBearer", "Plain", "Sasl", "SaslMessages", "Scram"]

#: The messages of one authentication, without a connection: each after the first one for an answer of the server.
SaslMessages: TypeAlias = AsyncGenerator[bytes, bytes]


class Plain:
    """A name and its password, as the mechanism PLAIN, which sends both: use TLS. ``password`` may be a function, or
    coroutine function, that gives it.
    """

    mechanism: Final = "PLAIN"

    def __init__(self, user: str, password: Source) -> None:
        self.user: Final = _without_nul(user)
        self._password: Final = password

    async def exchange(self) -> SaslMessages:
        """The one message of PLAIN (RFC 4616). Raises :exc:`~broker_core.client.CredentialsFailed`."""
        password = _without_nul(await _secret(self._password))
        yield f"\0{self.user}\0{password}".encode()

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

    async def exchange(self) -> SaslMessages:
        """The two messages of SCRAM. Raises :exc:`~broker_core.client.CredentialsFailed`, and
        :exc:`~.kafka_errors.SaslAuthenticationException` for a server that does not know the password.
        """
        scram = ScramClientExchange(self.mechanism, self.user, await _secret(self._password))
        answer = yield scram.first()
        try:
            answer = yield await asyncio.to_thread(scram.final, answer)
            scram.finish(answer)
        except ScramError as failed:
            raise SaslAuthenticationException(f"{self.mechanism}: {failed}") from None

    def __repr__(self) -> str:
        return f"Scram({self.user!r}, ..., mechanism={self.mechanism!r})"


class OAuthBearer:
    """A token, as the mechanism OAUTHBEARER (RFC 7628): text, the path of a file, or a function or coroutine function
    that gives its text, as of :class:`~broker_core.client.Token`. It is asked for with each new connection.
    """

    mechanism: Final = "OAUTHBEARER"

    def __init__(self, token: Source | Path) -> None:
        self._token: Final = Token(token)

    async def exchange(self) -> SaslMessages:
        """The token, and an empty message if the server does not take it, which has to refuse by itself then.

        Raises :exc:`~broker_core.client.CredentialsFailed`, and :exc:`~.kafka_errors.SaslAuthenticationException` for a
        server that goes on all the same.
        """
        token = await self._token.credentials.current()
        answer = yield b"n,,\x01auth=Bearer " + (token or b"") + b"\x01\x01"
        if answer:
            yield b"\x01"
            raise SaslAuthenticationException(f"the server does not take the token: {_status(answer)}")

    def __repr__(self) -> str:
        return f"OAuthBearer({self._token!r})"


#: All ways for a client to authenticate.
Sasl: TypeAlias = Plain | Scram | OAuthBearer


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
