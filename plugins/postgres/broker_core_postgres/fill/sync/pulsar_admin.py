"""A client of a cluster's admin REST interface (``/admin/v2``): checked reading, with retries.

Everything in an answer is checked before it is used: types, sizes, names. Transient failures are retried: 5xx, 408,
429, no connection, no answer in time, an incomplete answer. A redirect to the broker that owns a bundle is followed
with the token, as Pulsar's clients do, but never from TLS to plain text.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote

import yarl

from broker_core import EncodedNames
from broker_core.catalog import CatalogError, check_properties
from broker_core.errors import InvalidListing, InvalidName
from broker_core.names import PERSISTENT, NamespaceName, TopicName
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.sync.retry import Retry, TransientFailure

if TYPE_CHECKING:
    import aiohttp

__all__ = ["PARALLEL", "TIMEOUT", "AdminAddress", "AdminRefused", "PulsarAdmin", "UnusableAnswer"]

#: Defaults: parallel requests, and seconds for each of them.
PARALLEL: Final = 16
TIMEOUT: Final = 60.0
_MIB: Final = 1024 * 1024
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_SUCCESS: Final = frozenset({200, 204})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5
_REASON: Final = 300  # characters shown of an error's text


class AdminRefused(FillingFailed):
    """The cluster refused a request. ``status`` is the HTTP status, 4xx."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class UnusableAnswer(FillingFailed):
    """An answer that breaks the interface, or is larger than accepted."""


@dataclass(frozen=True, slots=True)
class AdminAddress:
    """The address of a cluster's admin interface, and the credentials.

    ``url``: ``http://host:8080`` or ``https://...``, with or without ``/admin/v2``. ``token`` is sent as
    ``Authorization: Bearer``. ``tls`` is for https; ``None`` trusts the system's authorities.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def base(self) -> str:
        """The URL with ``/admin/v2``. Raises :exc:`FillingFailed` for one that is invalid."""
        try:
            parsed = yarl.URL(self.url)
            usable = parsed.scheme in {"http", "https"} and bool(parsed.host)
        except ValueError:
            usable, parsed = False, yarl.URL()
        if not usable:
            raise FillingFailed(
                f"{self.url!r} is no URL of an admin interface, such as http://localhost:8080"
            )
        if parsed.user or parsed.password or parsed.query_string or parsed.fragment:
            raise FillingFailed(
                "The URL of the admin interface has no user, query or fragment: a token comes from a file or variable"
            )
        path = parsed.path.rstrip("/").removesuffix("/admin/v2").rstrip("/")
        return f"{parsed.origin()}{quote(path, safe='/')}/admin/v2"


class PulsarAdmin:
    """Reads from one cluster; an asynchronous context manager.

    At most ``parallel`` requests run at once, each for ``timeout`` seconds at most. ``most_bytes`` bounds an answer.
    Methods raise :exc:`AdminRefused`, :exc:`UnusableAnswer` or, after the last try, :exc:`.TransientFailure`.
    """

    def __init__(
        self,
        address: AdminAddress,
        *,
        parallel: int = PARALLEL,
        timeout: float = TIMEOUT,
        retry: Retry = Retry(),
        most_bytes: int = 1024 * _MIB,
    ) -> None:
        self._address = address
        #: The URL with ``/admin/v2``.
        self.base = address.base
        self._places = asyncio.Semaphore(parallel)
        self._parallel = parallel
        self._timeout = timeout
        self._retry = retry
        self._most_bytes = most_bytes
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        import aiohttp  # a fifth of the start of commands that ask no cluster

        timeout = aiohttp.ClientTimeout(total=self._timeout)
        connector = aiohttp.TCPConnector(limit=self._parallel, ssl=self._address.tls or True)
        # Without proxies and .netrc of the environment: only the named cluster is read.
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    # -- questions to the cluster

    async def tenants(self) -> list[str]:
        """The names of all tenants."""
        return _strings(await self._get("tenants"), "tenants")

    async def namespaces(self, tenant: str) -> list[NamespaceName]:
        """The namespaces of a tenant."""
        what = f"namespaces of {tenant}"
        names = _strings(await self._get(f"namespaces/{_part(tenant)}"), what)
        try:
            namespaces = [NamespaceName.parse(name) for name in names]
        except InvalidName as error:
            raise UnusableAnswer(f"The cluster's list of {what} is unusable: {error}") from None
        for namespace in namespaces:
            if namespace.tenant != tenant:
                raise UnusableAnswer(
                    f"The cluster's list of {what} is unusable: {namespace} is another tenant's"
                )
        return namespaces

    async def topics(self, namespace: NamespaceName, domain: str) -> list[str]:
        """The local names of the listed topics of a domain, without repetitions; each partition is one."""
        return self._locals(await self._get(f"{domain}/{_path(namespace)}"), namespace, domain)

    async def partitioned_topics(self, namespace: NamespaceName, domain: str) -> list[str]:
        """The local names of the partitioned topics."""
        return self._locals(await self._get(f"{domain}/{_path(namespace)}/partitioned"), namespace, domain)

    async def properties(self, topic: TopicName) -> dict[str, str] | None:
        """The properties of a topic; ``None`` if it does not exist (any more).

        A broker answers with an empty body for a partitioned topic that was made without properties, as pulsar-admin
        and producers make them. It refuses the properties of a non-persistent topic (406 in 4.2.4); a partitioned one
        has them in its metadata, with the number of partitions. A partition whose partitioned topic is gone is listed,
        but no broker loads it (409): it has no properties.

        Raises :exc:`UnusableAnswer` for properties that are invalid.
        """
        path = f"{topic.domain}/{_path(topic.namespace)}/{_part(topic.local)}"
        try:
            if topic.domain == PERSISTENT:
                said = await self._get(f"{path}/properties", may_be_empty=True)
            else:
                said = _properties_of_metadata(await self._get(f"{path}/partitions"), topic)
        except AdminRefused as error:
            if error.status == 404 or (error.status == 409 and topic.partition >= 0):
                return None
            raise
        if said is None:
            return {}
        try:
            return check_properties(said)
        except CatalogError as error:
            raise UnusableAnswer(f"The cluster's properties of {topic} are unusable: {error}") from None

    def _locals(self, said: Any, namespace: NamespaceName, domain: str) -> list[str]:
        what = f"{domain} topics of {namespace}"
        prefix = f"{domain}://{namespace}/"
        names = dict.fromkeys(_strings(said, what))  # each once
        other = next((name for name in names if not name.startswith(prefix)), None)
        if other is not None:
            raise UnusableAnswer(
                f"The cluster's list of {what} is unusable: {other[:200]!r} is no {domain} topic of {namespace}"
            )
        local = [name[len(prefix) :] for name in names]
        try:
            EncodedNames.check(local)
        except InvalidListing as error:
            raise UnusableAnswer(f"The cluster's list of {what} is unusable: {error}") from None
        return local

    # -- requests

    async def _get(self, path: str, *, may_be_empty: bool = False) -> Any:
        """The JSON document at a path below ``/admin/v2``; ``None`` for an empty answer, if it ``may_be_empty``.

        Otherwise an empty answer, of a proxy for example, is a transient failure.
        """

        async def once() -> Any:
            async with self._places:
                url, body = await self._follow(f"{self.base}/{path}")
            if not body.strip():
                if may_be_empty:
                    return None
                raise TransientFailure(f"GET {url}: the answer is empty")
            try:
                return json.loads(body)
            except (ValueError, RecursionError) as error:
                # An error page of a proxy, or an incomplete answer.
                raise TransientFailure(f"GET {url}: the answer is no JSON: {error}") from None

        return await self._retry.run(once)

    async def _follow(self, url: str) -> tuple[str, bytes]:
        """Follow redirects. Returns the last URL and the body of its answer."""
        for _ in range(_MOST_REDIRECTS + 1):
            status, headers, body = await self._request(url)
            if status in _PASSING:
                raise TransientFailure(
                    f"GET {url}: {_said(status, body)}", after=_seconds(headers.get("Retry-After"))
                )
            if status in _SUCCESS:
                return url, body
            if status not in _REDIRECTS:
                raise AdminRefused(f"GET {url}: {_said(status, body)}", status)
            url = _redirected(url, headers.get("Location"))
        raise UnusableAnswer(f"GET {url}: more than {_MOST_REDIRECTS} redirects")

    async def _request(self, url: str) -> tuple[int, Mapping[str, str], bytes]:
        import aiohttp

        assert self._session is not None, "the client is a context manager"
        headers = {"Accept": "application/json"}
        if self._address.token is not None:
            headers["Authorization"] = f"Bearer {self._address.token}"
        try:
            async with self._session.get(
                yarl.URL(url, encoded=True), headers=headers, allow_redirects=False
            ) as response:
                return response.status, response.headers, await self._body(url, response)
        except TimeoutError:
            raise TransientFailure(f"GET {url}: no answer within {self._timeout:g} s") from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise FillingFailed(f"GET {url}: the certificate is not trusted: {error}") from None
        except aiohttp.ClientConnectorError as error:  # its own text mentions TLS even without it
            raise TransientFailure(f"GET {url}: cannot connect: {error.os_error}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise TransientFailure(f"GET {url}: {str(error) or type(error).__name__}") from None

    async def _body(self, url: str, response: aiohttp.ClientResponse) -> bytes:
        parts, size = [], 0
        async for part in response.content.iter_any():
            size += len(part)
            if size > self._most_bytes:
                response.close()
                raise UnusableAnswer(f"GET {url}: the answer is larger than {self._most_bytes} bytes")
            parts.append(part)
        return b"".join(parts)


def _said(status: int, body: bytes) -> str:
    """The status, with the reason of the broker if there is one."""
    reason: object = None
    try:
        document = json.loads(body[:65_536])
        reason = document.get("reason") if isinstance(document, dict) else None
    except (ValueError, RecursionError):
        pass
    return f"{status}" + (f" ({reason[:_REASON]})" if isinstance(reason, str) and reason else "")


def _seconds(text: str | None) -> float | None:
    """The seconds of ``Retry-After``. Brokers do not send its other form, a date."""
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 7 else None


def _redirected(url: str, location: str | None) -> str:
    if not location:
        raise UnusableAnswer(f"GET {url}: a redirect to nowhere")
    try:
        here = yarl.URL(url, encoded=True)
        there = here.join(yarl.URL(location, encoded=True))
    except ValueError:
        raise UnusableAnswer(f"GET {url}: a redirect to no URL") from None
    if there.scheme not in {"http", "https"} or (here.scheme == "https" and there.scheme != "https"):
        raise UnusableAnswer(f"GET {url}: a redirect from {here.scheme} to {there.scheme} is not followed")
    return str(there)


def _strings(said: Any, what: str) -> list[str]:
    if not isinstance(said, list) or not all(isinstance(name, str) for name in said):
        raise UnusableAnswer(f"The cluster's list of {what} is unusable: it is no list of strings")
    return said


def _properties_of_metadata(said: Any, topic: TopicName) -> Any:
    """The properties in ``{"partitions": 3, "deleted": false, "properties": {...}}``, in which they are optional."""
    if not isinstance(said, dict):
        raise UnusableAnswer(f"The cluster's metadata of {topic} is unusable: it is no object")
    return said.get("properties")


def _path(namespace: NamespaceName) -> str:
    return f"{_part(namespace.tenant)}/{_part(namespace.namespace)}"


def _part(name: str) -> str:
    """Encode a name as one part of a path.

    Names of dots alone are not special here: a proxy would take them for folders, but brokers refuse such names.
    """
    return quote(name, safe="")
