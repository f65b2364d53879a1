"""The client of a server's HTTP API (``/v1``), for all questions besides topics, partitions and brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote, urlencode

from broker_core.client.authentication import Authentication
from broker_core.client.client_errors import OperationTimeout, UnexpectedAnswer
from broker_core.client.client_tls import ClientTls
from broker_core.client.http.http_requests import HttpRequests, object_of, property_text
from broker_core.client.lookup_client import check_seconds, credentials_of
from broker_core.client.loop_bound import LoopBound
from broker_core.client.pulsar.lookup_session import default_client_version
from broker_core.compact_json import compact_json
from broker_core.names import Mode, NamespaceName, TopicName

__all__ = ["ApiClient"]

#: Bytes of an answer; a page of 10,000 topics with details takes a few megabytes.
_MOST: Final = 64 * 1024 * 1024

Namespace: TypeAlias = str | NamespaceName
Topic: TypeAlias = str | TopicName
#: The parts of ``/v1/server``.
Part: TypeAlias = Literal[
    "plugins", "metrics", "questions", "watchers", "caches", "check", "permits", "history", "clients"
]


class ApiClient(LoopBound):
    """A client of the HTTP API of this server: ``async with ApiClient("http://HOST:PORT") as api``.

    Each method gives one answer of the API as plain values: the object that docs/reference/http.md has for the
    operation of its name. ``service_url``, ``auth``, ``tls`` and the times, in seconds, are those of
    :class:`~broker_core.client.LookupClient`; an answer of more than ``max_answer`` bytes is an
    :exc:`~broker_core.client.UnexpectedAnswer`. A refusal of the server is a :exc:`~broker_core.client.ServerRefused`
    (:exc:`~broker_core.client.HandshakeRefused` for credentials), and no answer in time an
    :exc:`~broker_core.client.OperationTimeout`: nothing is asked again, but at another address.

    It belongs to one event loop. ``pattern``, ``mode`` and ``properties`` of a question select topics, as for a
    listing; ``as_`` has the ``role``, ``original_principal``, ``address`` and ``client_version`` of another client,
    which takes the right `admin`.
    """

    def __init__(
        self,
        service_url: str,
        *,
        auth: Authentication | None = None,
        tls: ClientTls | None = None,
        operation_timeout: float = 30.0,
        connect_timeout: float = 10.0,
        client_version: str | None = None,
        max_answer: int = _MOST,
    ) -> None:
        """Make a client that is not connected yet. Raises :exc:`~broker_core.client.InvalidServiceUrl`, and
        :exc:`ValueError` for wrong numbers.
        """
        check_seconds("operation_timeout", operation_timeout)
        check_seconds("connect_timeout", connect_timeout)
        if max_answer < 1:
            raise ValueError(f"max_answer is 1 at least, not {max_answer}")
        self.service_url: Final = service_url
        self._timeout = operation_timeout
        self._max_answer = max_answer
        credentials, tls = credentials_of(service_url, auth, tls)
        self._requests = HttpRequests(
            service_url,
            client_version=client_version or default_client_version(),
            credentials=credentials,
            tls=tls,
            connect_timeout=connect_timeout,
        )

    async def me(self, namespace: Namespace | None = None) -> dict[str, Any]:
        """The role of the client with its rights, also in ``namespace``, and the server that answers."""
        return await self._get("/v1/me", namespace=namespace)

    async def namespaces(
        self,
        *,
        prefix: str | None = None,
        contains: Sequence[str] = (),
        count: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """A page of the namespaces that the client may list; ``next`` is the ``cursor`` of the next one."""
        return await self._get(
            "/v1/namespaces",
            prefix=prefix,
            contains=contains,
            count=count or None,
            limit=limit,
            cursor=cursor,
        )

    async def namespace(self, namespace: Namespace) -> dict[str, Any]:
        """One namespace: its version, its counts, and where its topics come from."""
        return await self._get(_path(namespace))

    async def changes(
        self, namespace: Namespace, *, since: str | None = None, limit: int | None = None, wait: int = 0
    ) -> dict[str, Any]:
        """The changes after the version ``since``; with ``wait``, within so many seconds as soon as there are some.

        ``version`` is the next ``since``, at once if there are ``more``; without a ``since`` it is the one now. A
        :exc:`~broker_core.client.ServerRefused` whose ``problem`` has a ``version`` is a gap: list the topics anew.
        """
        path = f"{_path(namespace)}/changes"
        return await self._get(path, within=wait, since=since, limit=limit, wait=wait or None)

    async def topics(
        self,
        namespace: Namespace,
        *,
        pattern: str | None = None,
        mode: Mode = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        detail: Sequence[str] = (),
        limit: int | None = None,
        cursor: str | None = None,
        offset: int | None = None,
        count: bool = False,
        plan: bool = False,
    ) -> dict[str, Any]:
        """A listing, or with ``limit`` a page of it: after ``offset`` names, or at a ``cursor``.

        With ``count`` it has the ``total``, with ``plan`` the way the pattern was applied.
        """
        return await self._get(
            f"{_path(namespace)}/topics",
            **_question(pattern, mode, properties),
            detail=",".join(detail) or None,
            limit=limit,
            cursor=cursor,
            offset=offset,
            count=count or None,
            plan=plan or None,
        )

    async def properties(
        self,
        namespace: Namespace,
        *,
        pattern: str | None = None,
        mode: Mode = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The properties that select topics of a listing, with how many names have them."""
        return await self._get(f"{_path(namespace)}/properties", **_question(pattern, mode, properties))

    async def property_values(
        self,
        namespace: Namespace,
        key: str,
        *,
        pattern: str | None = None,
        mode: Mode = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        prefix: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """The values of one property in a listing with how many names have them, the most frequent first."""
        path = f"{_path(namespace)}/properties/{quote(key, safe='')}"
        return await self._get(path, **_question(pattern, mode, properties), prefix=prefix, limit=limit)

    async def explain(
        self,
        namespace: Namespace,
        *,
        pattern: str | None = None,
        mode: Mode = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        as_: Mapping[str, str | None] | None = None,
        names: int = 0,
    ) -> dict[str, Any]:
        """Explanation of a listing, with its first ``names``."""
        body = _question_body(pattern, mode, properties, as_) | {"names": names}
        return await self._ask(f"{_path(namespace)}/explain", body)

    async def why(
        self,
        topic: Topic,
        *,
        pattern: str | None = None,
        mode: Mode = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        as_: Mapping[str, str | None] | None = None,
    ) -> dict[str, Any]:
        """Whether a topic is in a listing, which step removes it, and what would make it pass."""
        return await self._ask(f"{_topic_path(topic)}:why", _question_body(pattern, mode, properties, as_))

    async def topic(self, topic: Topic) -> dict[str, Any]:
        """The details of one topic."""
        return await self._get(_topic_path(topic))

    async def configs(self, topic: Topic, *, documentation: bool = False) -> dict[str, Any]:
        """The configs of Kafka that a topic has in effect, with the source of each."""
        return await self._get(f"{_topic_path(topic)}/configs", documentation=documentation or None)

    async def history(self, topic: Topic, *, limit: int | None = None) -> dict[str, Any]:
        """The changes of a topic in the change log, the newest first."""
        return await self._get(f"{_topic_path(topic)}/history", limit=limit)

    async def server(self, part: Part, **parameters: Any) -> dict[str, Any]:
        """The state and the load of a server: ``part`` is the end of the path, after ``/v1/server/``.

        ``parameters`` are the operation's, a sequence for one that may be repeated.
        """
        return await self._get(f"/v1/server/{quote(part, safe='')}", **parameters)

    async def close(self) -> None:
        """Close all connections; requests on them fail."""
        await self._requests.close()

    def __repr__(self) -> str:
        return f"<ApiClient of {self.service_url}>"

    async def _get(self, path: str, *, within: float = 0, **parameters: Any) -> dict[str, Any]:
        given = {name: _text(value) for name, value in parameters.items() if value is not None}
        query = urlencode(given, doseq=True)
        return await self._ask(f"{path}?{query}" if query else path, None, within)

    async def _ask(self, path: str, question: Mapping[str, Any] | None, within: float = 0) -> dict[str, Any]:
        """The answer, for which the server takes ``within`` seconds on purpose."""
        body = None if question is None else compact_json(question).encode()
        try:
            async with asyncio.timeout(self._timeout + within):
                response = await self._requests.ask(path, room=self._max_answer, body=body)
        except TimeoutError:
            reason = self._requests.problem
            raise OperationTimeout(
                f"no answer within {self._timeout + within:g} s{f': {reason}' if reason else ''}"
            ) from None
        if response.media_type != "application/json":
            raise UnexpectedAnswer(f"the server answered with {response.media_type!r:.100}, not with JSON")
        return await asyncio.to_thread(object_of, response)


def _path(namespace: Namespace) -> str:
    return f"/v1/namespaces/{NamespaceName.parse(str(namespace))}"


def _topic_path(topic: Topic) -> str:
    name = topic if isinstance(topic, TopicName) else TopicName.parse(topic)
    return f"{_path(name.namespace)}/topics/{quote(str(name), safe='')}"


def _question(pattern: str | None, mode: Mode, properties: Mapping[str, str] | None) -> dict[str, Any]:
    """A question as parameters. Raises :exc:`~broker_core.client.InvalidQuestion`."""
    pairs = [property_text(key, value) for key, value in (properties or {}).items()]
    return {"pattern": pattern, "mode": mode.name.lower(), "property": pairs}


def _question_body(
    pattern: str | None,
    mode: Mode,
    properties: Mapping[str, str] | None,
    as_: Mapping[str, str | None] | None,
) -> dict[str, Any]:
    """A question as a body."""
    body = {"pattern": pattern, "mode": mode.name.lower(), "properties": dict(properties or {})}
    return body if as_ is None else body | {"as": dict(as_)}


def _text(value: Any) -> Any:
    """Text of a query parameter: flags as in JSON, several values one by one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_text(each) for each in value]
    return str(value)
