"""Requests over HTTP to the addresses of a service URL: turns, redirects, credentials, and bounded answers."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp import hdrs

from broker_core.client.client_errors import (
    ConnectionLost,
    CredentialsFailed,
    HandshakeRefused,
    InvalidQuestion,
    InvalidServiceUrl,
    UnexpectedAnswer,
)
from broker_core.client.client_tls import ClientTls
from broker_core.client.failover import AddressHealth
from broker_core.client.http.address_turns import AddressTurns
from broker_core.client.http.http_errors import connection_error, json_object, refusal
from broker_core.client.pulsar.credentials import Credentials
from broker_core.client.pulsar.redirects import MAX_REDIRECTS
from broker_core.errors import ServerError
from broker_core.service_addresses import HTTP_SCHEMES, Address, is_tls, service_addresses, shown_address

__all__ = ["HttpRequests", "HttpResponse", "object_of", "property_text"]

_FIRST_BACKOFF: Final = 0.1  # seconds
_LONGEST_BACKOFF: Final = 2.0
_LONGEST_HEADER: Final = 256 * 1024  # bytes; the link to the next page has the name before it
#: Bytes of an answer that is no listing: a lookup, an error.
_SMALL: Final = 1024 * 1024
_ORIGINAL: Final = "X-Original-Principal"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response that was read to its end, from ``address``."""

    address: Address
    status: int
    headers: Mapping[str, str]
    body: bytes
    next: str | None

    @property
    def media_type(self) -> str:
        return self.headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0].strip().lower()


class HttpRequests:
    """Asks the addresses in turns. A request that is cancelled closes its connection."""

    def __init__(
        self,
        service_url: str,
        *,
        client_version: str,
        credentials: Credentials | None,
        tls: ClientTls | None,
        connect_timeout: float,
        original_principal: str | None = None,
    ) -> None:
        """``original_principal`` is sent to brokers beside the credentials of a proxy."""
        try:
            addresses = service_addresses(service_url, HTTP_SCHEMES)
        except ValueError as invalid:
            raise InvalidServiceUrl(str(invalid)) from None
        self._url = service_url
        self._scheme = "https" if is_tls(service_url) else "http"
        self._tls = (tls or ClientTls()) if is_tls(service_url) else None
        self._credentials = credentials
        self._client_version = client_version
        self._connect_timeout = connect_timeout
        self._original_principal = original_principal
        #: The addresses that get credentials: the caller has named them.
        self._trusted = frozenset((host.lower(), port) for host, port in addresses)
        self._health = AddressHealth(
            addresses, first_backoff=_FIRST_BACKOFF, longest_backoff=_LONGEST_BACKOFF
        )
        #: The choice of the next address.
        self.turns = AddressTurns(self._health, patience=connect_timeout)
        self._session: aiohttp.ClientSession | None = None

    @property
    def problem(self) -> str | None:
        """The reason why no address answers; ``None`` if one does."""
        return self._health.problem

    async def close(self) -> None:
        """Close all connections; requests on them fail."""
        if self._session is not None:
            await self._session.close()

    async def ask(
        self,
        path: str,
        expected: tuple[int, ...] = (200,),
        *,
        room: int = _SMALL,
        body: bytes | None = None,
    ) -> HttpResponse:
        """The response of the first address that answers, as :meth:`answered` gives it."""
        return await self.turns.ask(
            lambda address: self.answered(address, path, expected=expected, room=room, body=body)
        )

    async def answered(
        self,
        address: Address,
        path: str,
        headers: Mapping[str, str] | None = None,
        expected: tuple[int, ...] = (200,),
        *,
        room: int = _SMALL,
        body: bytes | None = None,
    ) -> HttpResponse:
        """The response, of ``room`` bytes at most, after the redirects of brokers to each other. Raises the error of
        any other status. With a ``body``, which is JSON, it is a POST.
        """
        scheme, host = self._scheme, address
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._send(host, path, headers or {}, room, body)
            if response.status in expected:
                return response
            if response.status == 401 and self._credentials is not None and host not in self._trusted:
                raise HandshakeRefused(
                    ServerError.AuthenticationError,
                    f"{shown_address(address)} redirects to {shown_address(host)}, which wants credentials: "
                    "they go to addresses of the service URL only",
                )
            if response.status not in (301, 302, 303, 307, 308):
                raise refusal(response.status, response.body)
            host, path = _redirected(f"{scheme}://{shown_address(host)}{path}", response)
        raise UnexpectedAnswer(f"{self._url} redirects more than {MAX_REDIRECTS} times")

    async def _send(
        self, address: Address, path: str, headers: Mapping[str, str], room: int, body: bytes | None
    ) -> HttpResponse:
        url = f"{self._scheme}://{shown_address(address)}{path}"
        context = True if self._tls is None else await asyncio.to_thread(self._tls.context)
        host, port = address
        # A redirect may lead anywhere.
        sent = {**headers, **(await self._authorization() if (host.lower(), port) in self._trusted else {})}
        if body is not None:
            sent[hdrs.CONTENT_TYPE] = "application/json"
        method = hdrs.METH_GET if body is None else hdrs.METH_POST
        try:
            async with self._open().request(
                method, url, headers=sent, data=body, allow_redirects=False, ssl=context
            ) as response:
                most = room if response.status == 200 else min(room, _SMALL)
                return HttpResponse(
                    address,
                    response.status,
                    response.headers,
                    await _body(response, most, address, self.turns.received),
                    _next_page(response, address),
                )
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            raise connection_error(failed, shown_address(address)) from None
        except ValueError as failed:  # an address that no name has, in the service URL or a redirect
            raise UnexpectedAnswer(
                f"{shown_address(address):.300} cannot be asked: {failed!s:.200}"
            ) from None
        except RuntimeError:
            if self._open().closed:
                raise ConnectionLost(f"the client of {self._url} is closed") from None
            raise

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # the client bounds its requests
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout),
                headers={hdrs.USER_AGENT: self._client_version, hdrs.ACCEPT_ENCODING: "identity"},
                auto_decompress=False,  # only identity was accepted
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
            )
        return self._session

    async def _authorization(self) -> dict[str, str]:
        credentials, original = self._credentials, self._original_principal
        named = {} if original is None else {_ORIGINAL: _header(original)}
        if credentials is None or credentials.data is None:
            return named
        try:
            async with asyncio.timeout(self._connect_timeout):
                data = await credentials.current() or b""
        except TimeoutError:
            raise CredentialsFailed(
                f"the credentials were not there within {self._connect_timeout:g} s"
            ) from None
        except CredentialsFailed:
            raise
        except Exception as failed:  # noqa: BLE001  # whatever their source raises; its text may hold what was read
            raise CredentialsFailed(f"no credentials: {type(failed).__name__}") from None
        if credentials.method == "basic":
            return named | {hdrs.AUTHORIZATION: f"Basic {base64.b64encode(data).decode()}"}
        if any(byte < 0x20 or byte == 0x7F for byte in data):
            raise CredentialsFailed("the credentials cannot be sent over HTTP: they hold control characters")
        scheme = "Bearer" if credentials.method == "token" else credentials.method
        return named | {hdrs.AUTHORIZATION: f"{scheme} {data.decode('utf-8', 'surrogateescape')}"}


def _header(text: str) -> str:
    """The text, if a header can have it. Raises :exc:`CredentialsFailed` otherwise."""
    if not text.isascii() or not text.isprintable():
        raise CredentialsFailed("the name of this principal cannot be sent over HTTP")
    return text


def _redirected(url: str, response: HttpResponse) -> tuple[Address, str]:
    """The target of a redirect of ``url``: host and port, and the path. Raises :exc:`UnexpectedAnswer`."""
    scheme = urlsplit(url).scheme
    here = shown_address(response.address)
    try:
        target = urlsplit(urljoin(url, response.headers.get(hdrs.LOCATION, "")))
        host, port = target.hostname, target.port or HTTP_SCHEMES[scheme]
    except ValueError as invalid:
        raise UnexpectedAnswer(f"{here} redirects to what is no address: {invalid!s:.200}") from None
    if target.scheme != scheme or host is None or target.username is not None:
        raise UnexpectedAnswer(f"{here} redirects to what is no broker of {scheme}")
    return (host, port), target.path + (f"?{target.query}" if target.query else "")


def _next_page(response: aiohttp.ClientResponse, address: Address) -> str | None:
    """The path of the next page, at the same address. Raises :exc:`UnexpectedAnswer`."""
    try:
        link: Any = response.links.get("next")
        return None if link is None else link["url"].raw_path_qs
    except ValueError as invalid:
        raise UnexpectedAnswer(
            f"{shown_address(address)} links to what is no address: {invalid!s:.200}"
        ) from None


async def _body(
    response: aiohttp.ClientResponse, room: int, address: Address, received: Callable[[Address], None]
) -> bytes:
    """The body as it is; ``received`` is called for each part.

    Raises :exc:`UnexpectedAnswer` if it has more than ``room`` bytes, or is compressed, since it may be larger than it
    looks.
    """
    received(address)
    encoding = response.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower()
    if encoding not in ("", "identity"):
        response.close()
        raise UnexpectedAnswer(f"{shown_address(address)} sent {encoding!r:.100}, which was not asked for")
    parts: list[bytes] = []
    size = response.content_length or 0
    if size <= room:
        size = 0
        async for part in response.content.iter_any():
            received(address)
            parts.append(part)
            size += len(part)
            if size > room:
                break
    if size > room:
        response.close()
        raise UnexpectedAnswer(f"the answer of {shown_address(address)} is larger than {room} bytes")
    return b"".join(parts)


def property_text(key: str, value: str) -> str:
    """A property of a question as a parameter. Raises :exc:`~broker_core.client.InvalidQuestion`."""
    if "=" in key:
        raise InvalidQuestion(
            f"a property whose key has an equals sign cannot be sent over HTTP: {key!r:.100}"
        )
    return f"{key}={value}"


def object_of(response: HttpResponse) -> dict[str, Any]:
    """The JSON object in a response. Raises :exc:`UnexpectedAnswer`."""
    said = json_object(response.body)
    if said is None:
        raise UnexpectedAnswer(f"{shown_address(response.address)} answered with no JSON object")
    return said
