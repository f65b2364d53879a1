"""A lookup service that is asked over HTTP: the API of this server, or a broker's web service where there is none.

No address is remembered as one or the other: what answers there may be replaced, and a proxy in between may answer for
it. A question goes to the API of this server first, each time.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlencode, urljoin, urlsplit

import aiohttp
import pyarrow as pa
import pyarrow.compute as pc
from aiohttp import hdrs

from broker_core.client.client_tls import ClientTls
from broker_core.client.errors import (
    ConnectionLost,
    CredentialsFailed,
    HandshakeRefused,
    InvalidQuestion,
    InvalidServiceUrl,
    UnexpectedAnswer,
)
from broker_core.client.http.address_turns import AddressTurns
from broker_core.client.http.http_errors import connection_error, is_reason, refusal, wants_unfiltered
from broker_core.client.http.names_of_body import details_of_arrow, names_of_arrow, names_of_json
from broker_core.client.pulsar.address_health import Address, AddressHealth, shown
from broker_core.client.pulsar.credentials import Credentials
from broker_core.client.pulsar.lookup_session import BrokerAddress, Watcher
from broker_core.client.pulsar.redirects import MAX_REDIRECTS
from broker_core.client.topic_listing import TopicListing
from broker_core.client.topics_question import TopicsQuestion
from broker_core.errors import ServerError
from broker_core.names import Mode, TopicName
from broker_core.service_addresses import HTTP_SCHEMES, is_tls, service_addresses

__all__ = ["HttpService"]

_FIRST_BACKOFF: Final = 0.1  # seconds
_LONGEST_BACKOFF: Final = 2.0
_LONGEST_HEADER: Final = 256 * 1024  # bytes; the link to a next page has the name that it begins behind
#: Bytes of an answer that is no listing: a lookup, an error.
_SMALL: Final = 1024 * 1024
_MOST_PAGES: Final = 10_000  # of one listing
_ARROW: Final = "application/vnd.apache.arrow.stream"
_PROBLEM: Final = "application/problem+json"
_FILTERED: Final = "Topics-Filtered"
_WARNINGS: Final = "Topics-Warnings"
#: What a server that does not apply the pattern says to ask with; older ones list all topics without it.
_UNFILTERED: Final = "unfiltered=true"
_ORIGINAL: Final = "X-Original-Principal"
#: The tag of a listing of names: their hash. Pages have another one.
_HASH_TAG: Final = re.compile(r'(?:W/)?"([0-9a-f]{8})"')


@dataclass(frozen=True, slots=True)
class _Response:
    """A response that was read to its end, from ``address``."""

    address: Address
    status: int
    headers: Mapping[str, str]
    body: bytes
    next: str | None

    @property
    def media_type(self) -> str:
        return self.headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class _Pages:
    """What was made of the pages of a listing: none where it has not changed. ``topics_hash`` if the server said it."""

    parts: Sequence[Any]
    filtered: bool
    topics_hash: str | None
    warnings: tuple[str, ...]


class HttpService:
    """Its methods wait for an answer or an error, without a time-out of their own; they raise
    :exc:`~broker_core.client.errors.ClientError`. A request that is cancelled closes its connection.
    """

    def __init__(
        self,
        service_url: str,
        *,
        client_version: str,
        credentials: Credentials | None,
        tls: ClientTls | None,
        connect_timeout: float,
        max_answer: int,
        original_principal: str | None = None,
    ) -> None:
        """``max_answer`` bounds a listing, all of its pages together, in bytes. ``original_principal`` is named to
        brokers beside the credentials of a proxy.
        """
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
        self._max_answer = max_answer
        self._original_principal = original_principal
        #: Where credentials go to: the caller has named them.
        self._trusted = frozenset((host.lower(), port) for host, port in addresses)
        self._health = AddressHealth(
            addresses, first_backoff=_FIRST_BACKOFF, longest_backoff=_LONGEST_BACKOFF
        )
        self._turns = AddressTurns(self._health, patience=connect_timeout)
        self._session: aiohttp.ClientSession | None = None

    @property
    def problem(self) -> str | None:
        """Why no address answers; ``None`` where one does."""
        return self._health.problem

    async def topics(self, question: TopicsQuestion) -> TopicListing:
        """The names of the topics."""
        return await self._turns.ask(lambda address: self._topics(address, question))

    async def details(
        self, question: TopicsQuestion, columns: Sequence[str]
    ) -> tuple[TopicListing, pa.Table]:
        """The names of the topics, and a table of them with these details, in its own order.

        Its columns are those of :func:`~broker_core.listing.rendered.details.detail_schema`. The API of this server
        alone has them.
        """
        from broker_core.listing.rendered.details import detail_schema

        read = partial(details_of_arrow, schema=detail_schema(columns))

        async def ask(address: Address) -> tuple[TopicListing, pa.Table]:
            pages = await self._pages(address, question, read, columns)
            if pages is None:
                raise UnexpectedAnswer(
                    f"{shown(address)} has not the API of this server, which knows details"
                )
            table = pa.concat_tables(pages.parts)
            names = table.column("name").combine_chunks().cast(pa.large_string())
            listing = await question.listing(
                names, filtered=pages.filtered, changed=True, topics_hash=None, warnings=pages.warnings
            )
            if not pages.filtered:
                table = table.filter(pc.is_in(names, value_set=listing.names))
            return listing, table

        return await self._turns.ask(ask)

    async def loaded_topics(self, namespace: str) -> Any:
        """The non-persistent topics of a namespace as a column, of all brokers that have some loaded: a broker's web
        service asks them. docs/reference/pulsar-behaviour.md#non-persistent-topics-of-all-brokers
        """
        path = f"/admin/v2/non-persistent/{namespace}"
        response = await self._turns.ask(
            lambda address: self._answered(address, path, expected=(200, 404), room=self._max_answer)
        )
        if response.status == 404:
            if is_reason(response.body) and b"Namespace does not exist" in response.body:
                return pa.array([], pa.large_string())
            raise refusal(response.status, response.body)
        return await asyncio.to_thread(names_of_json, response.body)

    async def watch(self, _namespace: str, _pattern: str, _watcher: Watcher) -> bool:
        """Nothing is watched over HTTP by Pulsar's names of paths."""
        return False

    async def partitions(self, topic: str, *, auto_create: bool) -> int:
        """How many partitions a topic has."""
        path = f"/admin/v2/{_path_of(topic)}/partitions?checkAllowAutoCreation={str(auto_create).lower()}"
        response = await self._turns.ask(lambda address: self._answered(address, path))
        partitions = _object(response).get("partitions")
        if type(partitions) is not int or partitions < 0:
            raise UnexpectedAnswer(f"{shown(response.address)} says no number of partitions")
        return partitions

    async def broker(self, topic: str, *, listener_name: str | None) -> BrokerAddress:
        """The broker that serves a topic; redirects are followed."""
        query = "" if listener_name is None else f"?{urlencode({'listenerName': listener_name})}"
        path = f"/lookup/v2/topic/{_path_of(topic)}{query}"
        response = await self._turns.ask(lambda address: self._answered(address, path))
        said = _object(response)
        url, url_tls = (
            value if isinstance(value := said.get(name), str) and value else None
            for name in ("brokerUrl", "brokerUrlTls")
        )
        if url is None and url_tls is None:
            raise UnexpectedAnswer(f"{shown(response.address)} names no broker")
        return BrokerAddress(
            url, url_tls, redirect=False, authoritative=True, proxy_through_service_url=False
        )

    async def close(self) -> None:
        """Close all connections; what is asked over them fails."""
        if self._session is not None:
            await self._session.close()

    # ---- listings ------------------------------------------------------------------------------------------

    async def _topics(self, address: Address, question: TopicsQuestion) -> TopicListing:
        found = await self._by_our_api(address, question)
        return await self._by_a_broker(address, question) if found is None else found

    async def _by_a_broker(self, address: Address, question: TopicsQuestion) -> TopicListing:
        """The listing of a broker's web service. docs/reference/pulsar-behaviour.md#listings-over-http"""
        if not question.properties:
            path = f"/admin/v2/namespaces/{question.namespace}/topics?mode={question.mode.name}"
        elif question.mode is Mode.PERSISTENT and all(key for key, _ in question.properties):
            # Decoded as a whole, then pair by pair.
            pairs = ",".join(f"{quote_plus(key)}={quote_plus(value)}" for key, value in question.properties)
            path = f"/admin/v2/persistent/{question.namespace}?{urlencode({'properties': pairs})}"
        else:
            raise InvalidQuestion(
                f"{shown(address)} has the web service of a broker, which takes properties for persistent topics only, "
                "and with a key each: ask over pulsar://"
            )
        response = await self._answered(address, path, expected=(200, 404), room=self._max_answer)
        if response.status == 404:
            refused = refusal(response.status, response.body)
            if not is_reason(response.body):
                raise UnexpectedAnswer(
                    f"{shown(address)} has neither the API of this server nor the web service of a broker"
                )
            raise refused
        names = await asyncio.to_thread(names_of_json, response.body)
        return await question.listing(names, filtered=False, changed=True, topics_hash=None)

    async def _by_our_api(self, address: Address, question: TopicsQuestion) -> TopicListing | None:
        """The listing by the API of this server; ``None`` where the address does not have it."""
        pages = await self._pages(address, question, names_of_arrow)
        if pages is None:
            return None
        if not pages.parts:
            return TopicListing([], changed=False, topics_hash=question.topics_hash, warnings=pages.warnings)
        column = (
            pages.parts[0]
            if len(pages.parts) == 1
            else await asyncio.to_thread(pa.concat_arrays, pages.parts)
        )
        return await question.listing(
            column,
            filtered=pages.filtered,
            changed=True,
            topics_hash=pages.topics_hash,
            warnings=pages.warnings,
        )

    async def _pages(
        self,
        address: Address,
        question: TopicsQuestion,
        read: Callable[[bytes], Any],
        details: Sequence[str] = (),
    ) -> _Pages | None:
        """What ``read`` makes of each page of a listing; ``None`` where the address has not the API of this server."""
        query = [("mode", question.mode.name.lower())]
        if question.pattern is not None:
            query.append(("pattern", question.pattern))
        for key, value in question.properties:
            if "=" in key:
                raise InvalidQuestion(
                    f"a property whose key has an equals sign cannot be sent over HTTP: {key!r:.100}"
                )
            query.append(("property", f"{key}={value}"))
        if details:
            query.append(("detail", ",".join(details)))
        path: str | None = f"/v1/namespaces/{question.namespace}/topics?{urlencode(query)}"
        headers: dict[str, str] = {hdrs.ACCEPT: _ARROW}
        if question.topics_hash is not None:
            headers[hdrs.IF_NONE_MATCH] = f'W/"{question.topics_hash}"'
        parts: list[Any] = []
        seen: set[str] = set()
        room = self._max_answer
        filtered, topics_hash = True, None
        warnings: tuple[str, ...] = ()
        while path is not None:
            if path in seen or len(seen) == _MOST_PAGES:
                raise UnexpectedAnswer(f"the pages of the listing of {shown(address)} do not end")
            seen.add(path)
            response = await self._answered(address, path, headers, (200, 304, 400, 404), room=room)
            room -= len(response.body)
            if response.status == 400:
                if _UNFILTERED in path or not wants_unfiltered(response.body):
                    raise refusal(response.status, response.body)
                path = f"{path}&{_UNFILTERED}"
                continue
            warnings = warnings or _warnings(response)
            if response.status == 304:
                if hdrs.IF_NONE_MATCH not in headers:
                    raise UnexpectedAnswer(f"{shown(address)} says unchanged to a question without a hash")
                return _Pages([], filtered=True, topics_hash=None, warnings=warnings)
            if response.status == 404:
                if response.media_type == _PROBLEM:
                    raise refusal(response.status, response.body)
                if parts:
                    raise UnexpectedAnswer(f"{shown(address)} does not have the next page of its listing")
                return None
            if response.media_type != _ARROW:
                raise UnexpectedAnswer(f"{shown(address)} answered with {response.media_type!r:.100}")
            parts.append(await asyncio.to_thread(read, response.body))
            filtered = filtered and response.headers.get(_FILTERED, "").lower() == "true"
            # The hash of pages is not told: it is computed of all of them.
            tag = _HASH_TAG.fullmatch(response.headers.get(hdrs.ETAG, ""))
            topics_hash = tag[1] if tag is not None and response.next is None and len(parts) == 1 else None
            headers.pop(hdrs.IF_NONE_MATCH, None)
            path = response.next
        return _Pages(parts, filtered, topics_hash, warnings)

    # ---- requests ------------------------------------------------------------------------------------------

    async def _answered(
        self,
        address: Address,
        path: str,
        headers: Mapping[str, str] | None = None,
        expected: tuple[int, ...] = (200,),
        *,
        room: int = _SMALL,
    ) -> _Response:
        """The response, of ``room`` bytes at most, past the redirects of brokers to each other. Raises the error of any
        other status.
        """
        scheme, host = self._scheme, address
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._get(host, path, headers or {}, room)
            if response.status in expected:
                return response
            if response.status == 401 and self._credentials is not None and host not in self._trusted:
                raise HandshakeRefused(
                    ServerError.AuthenticationError,
                    f"{shown(address)} redirects to {shown(host)}, which wants credentials: they go to addresses of "
                    "the service URL only",
                )
            if response.status not in (301, 302, 303, 307, 308):
                raise refusal(response.status, response.body)
            host, path = _redirected(f"{scheme}://{shown(host)}{path}", response)
        raise UnexpectedAnswer(f"{self._url} redirects more than {MAX_REDIRECTS} times")

    async def _get(self, address: Address, path: str, headers: Mapping[str, str], room: int) -> _Response:
        url = f"{self._scheme}://{shown(address)}{path}"
        context = True if self._tls is None else await asyncio.to_thread(self._tls.context)
        host, port = address
        # A redirect may lead anywhere.
        sent = {**headers, **(await self._authorization() if (host.lower(), port) in self._trusted else {})}
        try:
            async with self._open().get(url, headers=sent, allow_redirects=False, ssl=context) as response:
                most = room if response.status == 200 else min(room, _SMALL)
                return _Response(
                    address,
                    response.status,
                    response.headers,
                    await _body(response, most, address, self._turns.heard),
                    _next_page(response, address),
                )
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            raise connection_error(failed, shown(address)) from None
        except ValueError as failed:  # an address that no name has, in the service URL or a redirect
            raise UnexpectedAnswer(f"{shown(address):.300} cannot be asked: {failed!s:.200}") from None
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
                auto_decompress=False,  # nothing was asked for but identity
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
    """A text that a header can have. Raises :exc:`CredentialsFailed` for another one."""
    if not text.isascii() or not text.isprintable():
        raise CredentialsFailed("the name of this principal cannot be sent over HTTP")
    return text


def _redirected(url: str, response: _Response) -> tuple[Address, str]:
    """Where a redirect of ``url`` leads: host and port, and the path. Raises :exc:`UnexpectedAnswer`."""
    scheme = urlsplit(url).scheme
    here = shown(response.address)
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
        raise UnexpectedAnswer(f"{shown(address)} links to what is no address: {invalid!s:.200}") from None


async def _body(
    response: aiohttp.ClientResponse, room: int, address: Address, heard: Callable[[Address], None]
) -> bytes:
    """The body as it is; ``heard`` is told of each part.

    Raises :exc:`UnexpectedAnswer` for one of more than ``room`` bytes, or a compressed one, which may be larger than it
    looks.
    """
    heard(address)
    encoding = response.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower()
    if encoding not in ("", "identity"):
        response.close()
        raise UnexpectedAnswer(f"{shown(address)} sent {encoding!r:.100}, which was not asked for")
    parts: list[bytes] = []
    size = response.content_length or 0
    if size <= room:
        size = 0
        async for part in response.content.iter_any():
            heard(address)
            parts.append(part)
            size += len(part)
            if size > room:
                break
    if size > room:
        response.close()
        raise UnexpectedAnswer(f"the answer of {shown(address)} is larger than {room} bytes")
    return b"".join(parts)


def _warnings(response: _Response) -> tuple[str, ...]:
    """What the server says of the question. Raises :exc:`UnexpectedAnswer`."""
    try:
        said = json.loads(response.headers.get(_WARNINGS, "[]"))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, list) or not all(isinstance(text, str) for text in said):
        raise UnexpectedAnswer(f"{shown(response.address)} sent warnings that are no JSON array of texts")
    return tuple(said)


def _path_of(topic: str) -> str:
    name = TopicName.parse(topic)
    return f"{name.domain}/{name.namespace}/{quote(name.local, safe='')}"


def _object(response: _Response) -> dict[str, Any]:
    try:
        said = json.loads(response.body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise UnexpectedAnswer(f"{shown(response.address)} answered with no JSON object")
    return said
