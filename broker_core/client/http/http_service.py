"""A lookup service that is asked over HTTP: the API of this server, or else a broker's web service.

The kind of an address is not remembered: its server may be replaced, and a proxy in between may answer for it. A
question goes to the API of this server first, each time.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlencode

import pyarrow as pa
import pyarrow.compute as pc
from aiohttp import hdrs

from broker_core.client.client_errors import InvalidQuestion, UnexpectedAnswer
from broker_core.client.client_tls import ClientTls
from broker_core.client.http.http_errors import is_reason, refusal, wants_unfiltered
from broker_core.client.http.http_requests import HttpRequests, HttpResponse, object_of, property_text
from broker_core.client.http.names_of_body import details_of_arrow, names_of_arrow, names_of_json
from broker_core.client.pulsar.credentials import Credentials
from broker_core.client.pulsar.lookup_session import BrokerAddress, WatchReceiver
from broker_core.client.topic_listing import TopicListing
from broker_core.client.topics_question import TopicsQuestion
from broker_core.concurrency import in_thread
from broker_core.names import Mode, TopicName
from broker_core.service_addresses import Address, shown_address

__all__ = ["HttpService"]

_MOST_PAGES: Final = 10_000  # of one listing
#: Tenants whose namespaces are asked for at a time.
_TENANTS: Final = 8
_ARROW: Final = "application/vnd.apache.arrow.stream"
_PROBLEM: Final = "application/problem+json"
_FILTERED: Final = "Topics-Filtered"
_WARNINGS: Final = "Topics-Warnings"
#: The parameter by which a server that does not apply the pattern lists all topics; older ones list all without it.
_UNFILTERED: Final = "unfiltered=true"
#: The tag of a listing of names: their hash. Pages have another one.
_HASH_TAG: Final = re.compile(r'(?:W/)?"([0-9a-f]{8})"')


@dataclass(frozen=True, slots=True)
class _Pages:
    """The parsed pages of a listing: none if it has not changed. ``topics_hash`` if the server sent it."""

    parts: Sequence[Any]
    filtered: bool
    topics_hash: str | None
    warnings: tuple[str, ...]


class HttpService:
    """A lookup service over HTTP.

    Methods wait for an answer or an error, without a time-out of their own; they raise
    :exc:`~broker_core.client.ClientError`. A request that is cancelled closes its connection.
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
        """``max_answer`` bounds a listing, all of its pages together, in bytes. ``original_principal`` is sent to
        brokers beside the credentials of a proxy.
        """
        self._requests = HttpRequests(
            service_url,
            client_version=client_version,
            credentials=credentials,
            tls=tls,
            connect_timeout=connect_timeout,
            original_principal=original_principal,
        )
        self._url = service_url
        self._max_answer = max_answer

    @property
    def problem(self) -> str | None:
        """The reason why no address answers; ``None`` if one does."""
        return self._requests.problem

    async def topics(self, question: TopicsQuestion) -> TopicListing:
        """The names of the topics."""
        return await self._requests.turns.ask(lambda address: self._topics(address, question))

    async def details(
        self, question: TopicsQuestion, columns: Sequence[str]
    ) -> tuple[TopicListing, pa.Table]:
        """The names of the topics, and a table of them with these details, in its own order.

        Its columns are as in :func:`~broker_core.listing.rendered.details.detail_schema`. Only the API of this server
        has them.
        """
        from broker_core.listing import detail_schema

        read = partial(details_of_arrow, schema=detail_schema(columns))

        async def ask(address: Address) -> tuple[TopicListing, pa.Table]:
            pages = await self._pages(address, question, read, columns)
            if pages is None:
                raise UnexpectedAnswer(
                    f"{shown_address(address)} has not the API of this server, which knows details"
                )
            table = pa.concat_tables(pages.parts)
            names = table.column("name").combine_chunks().cast(pa.large_string())
            listing = await question.listing(
                names, filtered=pages.filtered, changed=True, topics_hash=None, warnings=pages.warnings
            )
            if not pages.filtered:
                table = table.filter(pc.is_in(names, value_set=listing.names))
            return listing, table

        return await self._requests.turns.ask(ask)

    async def loaded_topics(self, namespace: str) -> Any:
        """The non-persistent topics of a namespace as a column, of all brokers that have some loaded: a broker's web
        service asks them. docs/reference/pulsar-behaviour.md#non-persistent-topics-of-all-brokers
        """
        path = f"/admin/v2/non-persistent/{namespace}"
        return await self._names(path, self._max_answer, missing=b"Namespace does not exist")

    async def namespaces(self) -> Any:
        """The namespaces of a cluster as a column, of all its tenants: a broker's web service has them.

        It refuses a client that may not administer the cluster.
        """
        tenants = await self._names("/admin/v2/tenants", self._max_answer)
        columns, room = [pa.array([], pa.large_string())], self._max_answer
        for start in range(0, len(tenants), _TENANTS):
            some = tenants.slice(start, _TENANTS).to_pylist()
            paths = (f"/admin/v2/namespaces/{quote(tenant, safe='')}" for tenant in some)
            columns += await asyncio.gather(*(self._names(path, room, missing=b"") for path in paths))
            room = self._max_answer - sum(column.nbytes for column in columns)
            if room <= 0:
                raise UnexpectedAnswer(
                    f"the namespaces of {self._url} take more than {self._max_answer} bytes"
                )
        return pa.concat_arrays(columns)

    async def _names(self, path: str, room: int, *, missing: bytes | None = None) -> Any:
        """The texts of a JSON array; none for a missing resource, if a broker may say why with the text ``missing``."""
        response = await self._requests.ask(path, (200, 404), room=room)
        if response.status == 404:
            if missing is not None and is_reason(response.body) and missing in response.body:
                return pa.array([], pa.large_string())
            raise refusal(response.status, response.body)
        return await in_thread(path, names_of_json, response.body)

    async def watch(self, _namespace: str, _pattern: str, _watcher: WatchReceiver) -> bool:
        """False: nothing is watched over HTTP."""
        return False

    async def partitions(self, topic: str, *, auto_create: bool) -> int:
        """The number of partitions of a topic."""
        path = f"/admin/v2/{_path_of(topic)}/partitions?checkAllowAutoCreation={str(auto_create).lower()}"
        response = await self._requests.ask(path)
        partitions = object_of(response).get("partitions")
        if type(partitions) is not int or partitions < 0:
            raise UnexpectedAnswer(f"{shown_address(response.address)} says no number of partitions")
        return partitions

    async def broker(self, topic: str, *, listener_name: str | None) -> BrokerAddress:
        """The broker that serves a topic; redirects are followed."""
        query = "" if listener_name is None else f"?{urlencode({'listenerName': listener_name})}"
        path = f"/lookup/v2/topic/{_path_of(topic)}{query}"
        response = await self._requests.ask(path)
        said = object_of(response)
        url, url_tls = (
            value if isinstance(value := said.get(name), str) and value else None
            for name in ("brokerUrl", "brokerUrlTls")
        )
        if url is None and url_tls is None:
            raise UnexpectedAnswer(f"{shown_address(response.address)} names no broker")
        return BrokerAddress(
            url, url_tls, redirect=False, authoritative=True, proxy_through_service_url=False
        )

    async def close(self) -> None:
        """Close all connections; requests on them fail."""
        await self._requests.close()

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
                f"{shown_address(address)} has the web service of a broker, "
                "which takes properties for persistent topics only, and with a key each: ask over pulsar://"
            )
        response = await self._requests.answered(address, path, expected=(200, 404), room=self._max_answer)
        if response.status == 404:
            refused = refusal(response.status, response.body)
            if not is_reason(response.body):
                raise UnexpectedAnswer(
                    f"{shown_address(address)} has neither the API of this server nor the web service of a broker"
                )
            raise refused
        names = await asyncio.to_thread(names_of_json, response.body)
        return await question.listing(names, filtered=False, changed=True, topics_hash=None)

    async def _by_our_api(self, address: Address, question: TopicsQuestion) -> TopicListing | None:
        """The listing by the API of this server; ``None`` if the address does not have it."""
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
        """The pages of a listing, each parsed by ``read``; ``None`` if the address does not have the API of this
        server.
        """
        query = [("mode", question.mode.name.lower())]
        if question.pattern is not None:
            query.append(("pattern", question.pattern))
        query += [("property", property_text(key, value)) for key, value in question.properties]
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
                raise UnexpectedAnswer(f"the pages of the listing of {shown_address(address)} do not end")
            seen.add(path)
            response = await self._requests.answered(address, path, headers, (200, 304, 400, 404), room=room)
            room -= len(response.body)
            if response.status == 400:
                if _UNFILTERED in path or not wants_unfiltered(response.body):
                    raise refusal(response.status, response.body)
                path = f"{path}&{_UNFILTERED}"
                continue
            warnings = warnings or _warnings(response)
            if response.status == 304:
                if hdrs.IF_NONE_MATCH not in headers:
                    raise UnexpectedAnswer(
                        f"{shown_address(address)} says unchanged to a question without a hash"
                    )
                return _Pages([], filtered=True, topics_hash=None, warnings=warnings)
            if response.status == 404:
                if response.media_type == _PROBLEM:
                    raise refusal(response.status, response.body)
                if parts:
                    raise UnexpectedAnswer(
                        f"{shown_address(address)} does not have the next page of its listing"
                    )
                return None
            if response.media_type != _ARROW:
                raise UnexpectedAnswer(f"{shown_address(address)} answered with {response.media_type!r:.100}")
            parts.append(await asyncio.to_thread(read, response.body))
            filtered = filtered and response.headers.get(_FILTERED, "").lower() == "true"
            # Pages come without a hash: it is computed of all of them.
            tag = _HASH_TAG.fullmatch(response.headers.get(hdrs.ETAG, ""))
            topics_hash = tag[1] if tag is not None and response.next is None and len(parts) == 1 else None
            headers.pop(hdrs.IF_NONE_MATCH, None)
            path = response.next
        return _Pages(parts, filtered, topics_hash, warnings)


def _warnings(response: HttpResponse) -> tuple[str, ...]:
    """The server's warnings about the question. Raises :exc:`UnexpectedAnswer`."""
    try:
        said = json.loads(response.headers.get(_WARNINGS, "[]"))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, list) or not all(isinstance(text, str) for text in said):
        raise UnexpectedAnswer(
            f"{shown_address(response.address)} sent warnings that are no JSON array of texts"
        )
    return tuple(said)


def _path_of(topic: str) -> str:
    name = TopicName.parse(topic)
    return f"{name.domain}/{name.namespace}/{quote(name.local, safe='')}"
