"""Ways for a client to authenticate: a token, a client certificate, or a name with its password."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from broker_core.client.client_errors import CredentialsFailed
from broker_core.client.client_tls import ClientTls
from broker_core.client.pulsar.credentials import Credentials

__all__ = ["Authentication", "Basic", "Source", "Tls", "Token", "single_token", "text_of"]

#: A secret, or a function or coroutine function that gives its text whenever it is needed.
Source: TypeAlias = str | Callable[[], str | Awaitable[str]]


class Token:
    """A JSON Web Token, as the method ``token`` of Pulsar.

    ``token`` is its text, the path of a file (a :class:`~pathlib.Path`, or text that begins with ``file:``), or a
    function or coroutine function that gives its text. Files and functions are read for each new connection, for each
    AUTH_CHALLENGE of the server and for each request over HTTP, in a thread; white space around a token does not count.
    """

    __slots__ = ("_source",)

    def __init__(self, token: Source | Path) -> None:
        if isinstance(token, str):
            # As Pulsar's clients take it.
            if token.startswith("file:"):
                token = Path(token.removeprefix("file:").removeprefix("//"))
            else:
                token = single_token(token.removeprefix("token:").encode(), "the token").decode()
        self._source: Final = token

    @property
    def credentials(self) -> Credentials:
        return Credentials("token", self._current)

    async def _current(self) -> bytes:
        source = self._source
        if not isinstance(source, Path):
            return single_token((await text_of(source)).encode(), "the token")
        try:
            read = await asyncio.to_thread(source.read_bytes)
        except OSError as error:
            raise CredentialsFailed(f"cannot read the token in {source}: {error.strerror}") from None
        return single_token(read, f"the token in {source}")

    def __repr__(self) -> str:
        return f"Token({_shown(self._source)})"


class Tls:
    """The client's own certificate, as PEM, as the method ``tls`` of Pulsar; without ``key`` it is in the same file."""

    __slots__ = ("certificate", "key")

    def __init__(self, certificate: Path | str, key: Path | str | None = None) -> None:
        self.certificate: Final = Path(certificate)
        self.key: Final = None if key is None else Path(key)

    @property
    def credentials(self) -> Credentials:
        return Credentials("tls")

    def added_to(self, tls: ClientTls) -> ClientTls:
        """The TLS of a client with this certificate. Raises :exc:`ValueError` if it has one already."""
        if tls.certificate is not None:
            raise ValueError("the client's certificate is given twice: in auth and in tls")
        return replace(tls, certificate=self.certificate, key=self.key)

    def __repr__(self) -> str:
        return f"Tls({str(self.certificate)!r})"


class Basic:
    """A name and its password, as the method ``basic`` of Pulsar; ``password`` may be a function that gives it."""

    __slots__ = ("_password", "user")

    def __init__(self, user: str, password: Source) -> None:
        if ":" in user:
            raise ValueError("the name of a user has no colon")
        self.user: Final = user
        self._password: Final = password

    @property
    def credentials(self) -> Credentials:
        return Credentials("basic", self._current)

    async def _current(self) -> bytes:
        return f"{self.user}:{await text_of(self._password)}".encode()

    def __repr__(self) -> str:
        return f"Basic({self.user!r}, {_shown(self._password)})"


#: All ways to authenticate.
Authentication: TypeAlias = Token | Tls | Basic | Credentials


def single_token(token: bytes, shown: str) -> bytes:
    """The token without white space around it. Raises :exc:`CredentialsFailed` for text that cannot be one: several
    lines or words would be sent as they are.
    """
    token = token.strip()
    if not token:
        raise CredentialsFailed(f"{shown}: it is empty")
    if any(not 0x21 <= byte <= 0x7E for byte in token):
        raise CredentialsFailed(f"{shown}: it is no single token: it holds white space, or is no plain text")
    return token


async def text_of(source: Source) -> str:
    """The text of a secret now. Raises :exc:`CredentialsFailed` if its function gives something else."""
    if isinstance(source, str):
        return source
    given: Any
    if inspect.iscoroutinefunction(source):
        given = source()
    else:
        given = await asyncio.to_thread(
            cast(Callable[[], Any], source)
        )  # it may read a file, or ask somebody
    text = await given if inspect.isawaitable(given) else given
    if not isinstance(text, str):
        raise CredentialsFailed(f"the function for the credentials gave {type(text).__name__}, not str")
    return text


def _shown(source: object) -> str:
    if isinstance(source, Path):
        return repr(str(source))
    return "..." if isinstance(source, str) else "a function"
