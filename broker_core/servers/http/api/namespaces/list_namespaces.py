"""``GET /v1/namespaces``: the namespaces that the client may list, with the catalogue's counts and versions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

import structlog
from aiohttp import hdrs, web
from pydantic import Field

from broker_core.catalog import NamespaceCount, NamespaceFilter, NamespaceState, reading_catalog
from broker_core.change_log import version_text
from broker_core.compact_json import ascii_json, ascii_text
from broker_core.concurrency import loop_turn
from broker_core.errors import ListingFailed
from broker_core.names import MAX_NAMESPACE, NamespaceName
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.namespaces.plugin_views import plain_ones, sources_of
from broker_core.servers.http.api.operation import HttpOperation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import (
    cursor_of,
    cursor_parameter,
    flag_parameter,
    limit_parameter,
)
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices, needs_catalog
from broker_core.servers.http.listable_namespaces import let_in

__all__ = [
    "ModeCounts",
    "NamespaceObject",
    "count_members",
    "every_namespace",
    "mode_counts",
    "operations",
]

#: Names that are read at a time, and how many of them rules decide about in a row.
_READ: Final = 2000
_DECIDED: Final = 100
#: Namespaces that gates are asked about before a look whether the page is full.
_AT_A_TIME: Final = 16

_log = structlog.get_logger(__name__)


class ModeCounts(JsonObject):
    """Numbers of names in a listing of each mode, each partition one."""

    persistent: int
    non_persistent: int
    all: int


class NamespaceObject(JsonObject):
    """A namespace, its version, and where its topics come from."""

    namespace: str
    version: str | None = Field(
        description="The version of the namespace, for `since=` of its changes; null if its counts are, or if "
        "there is no catalogue."
    )
    source: str = Field(
        description="Where its topics come from: `catalog`, or the first plugin that is asked to list them."
    )
    changed: str | None = Field(
        description="When a topic changed last, in UTC; null if the counts are, or the change log is empty.",
        json_schema_extra={"format": "date-time"},
    )


class _Listed(NamespaceObject):
    counts: ModeCounts | None = Field(
        description="The names that a listing of each mode has, each partition one; null if plugins list or "
        "hide topics of the namespace, or rules hide some from the client."
    )


class _Namespaces(JsonObject):
    items: list[_Listed]
    next: str | None = Field(description="The cursor of the next page; null after the last one.")
    complete: bool = Field(
        default=True,
        description="Before a cluster: whether the brokers were asked for all of theirs, by `upstream.admin_url`. "
        "Else these are the ones that were listed of late.",
    )
    total: int | None = Field(
        default=None,
        description="How many namespaces there are in all (`count`); null if plugins decide about each of them.",
    )


_EXAMPLE: Final = {
    "items": [
        {
            "namespace": "public/default",
            "version": "A1sqh0DGTTO5k7Gf3O4HIA:3.1bb0",
            "counts": {"persistent": 3, "non_persistent": 1, "all": 4},
            "source": "catalog",
            "changed": "2026-11-22T18:49:05.694+00:00",
        }
    ],
    "next": None,
    "total": 1,
}
_UNKNOWN: Final = (
    "the brokers behind this server hold the topics, and no namespace of theirs was listed of late: set "
    "upstream.admin_url, so that they can be asked for all of them"
)
#: Texts that names are to contain, at the most.
_MOST_PARTS: Final = 8


def _part(text: str) -> str:
    if not 0 < len(text) <= MAX_NAMESPACE:
        raise ValueError(f"must have 1 to {MAX_NAMESPACE} characters")
    return text


_PREFIX: Final = Parameter(
    "prefix",
    "Only the namespaces whose names, `tenant/namespace`, begin with this.",
    read=_part,
    schema={"type": "string", "minLength": 1, "maxLength": MAX_NAMESPACE},
    example="public/",
)
_CONTAINS: Final = Parameter(
    "contains",
    "Only those whose names contain this, in large or small letters; may be repeated,"
    f" {_MOST_PARTS} times at the most: then all of it.",
    read=_part,
    schema={
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_NAMESPACE},
        "maxItems": _MOST_PARTS,
    },
    repeated=True,
    example=["default"],
)
_COUNT: Final = flag_parameter(
    "count",
    "Whether the answer has the `total`, of all pages.",
)


def operations(services: ApiServices) -> list[HttpOperation]:
    """The operation of this module."""

    async def list_namespaces(request: ApiRequest) -> web.StreamResponse:
        if services.cluster is not None:
            known = await services.cluster.namespaces(request.asker)
            if not known.names and not known.complete and services.kafka_namespace is None:
                raise refused(501, _UNKNOWN)
            return await _page(request, _sources(services, _Names(known.names)), {"complete": known.complete})
        return await _page(request, _sources(services, needs_catalog(services).counts), {})

    return [
        HttpOperation(
            "GET",
            "/v1/namespaces",
            "listNamespaces",
            "The namespaces that hold topics, and that the client may list.",
            Right.CREDENTIALS,  # each namespace is asked about
            list_namespaces,
            {
                200: Reply(
                    "A page in the order of the names.",
                    {"application/json": _Namespaces},
                    {"Link": "The address of the next page, if there is one."},
                    {"application/json": _EXAMPLE},
                ),
                501: Reply(
                    "Brokers hold the topics, `upstream.admin_url` does not say where they can be asked for their "
                    "namespaces, and none was listed of late."
                ),
            },
            tag="namespaces",
            parameters=(
                limit_parameter("Namespaces of a page at the most."),
                cursor_parameter(NamespaceName.parse),
                _PREFIX,
                _CONTAINS,
                _COUNT,
            ),
        )
    ]


#: The catalogue's states of namespaces by name; ``None`` for a name that it does not hold.
_States: TypeAlias = Mapping[str, NamespaceState | None]


class _NamespaceNames(Protocol):
    """A source of names of namespaces, as :class:`~broker_core.catalog.NamespaceCounts`."""

    def states(self, after: str, most: int, wanted: NamespaceFilter, /) -> _States: ...

    def total(self, wanted: NamespaceFilter, /) -> int: ...


class _Names:
    """Names in order, without any facts about them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def states(self, after: str, most: int, wanted: NamespaceFilter) -> _States:
        names = islice(self._names, bisect_right(self._names, after), None)
        return dict.fromkeys(islice(filter(wanted.has, names), most))

    def total(self, wanted: NamespaceFilter) -> int:
        return sum(map(wanted.has, self._names))


class _WithNamespace:
    """The names of another source, and one more."""

    def __init__(self, source: _NamespaceNames, name: str) -> None:
        self._source = source
        self._name = name

    def states(self, after: str, most: int, wanted: NamespaceFilter) -> _States:
        found = self._source.states(after, most, wanted)
        if self._name <= after or not wanted.has(self._name) or self._name in found:
            return found
        return dict(sorted([*found.items(), (self._name, None)])[:most])

    def total(self, wanted: NamespaceFilter) -> int:
        is_new = self._name not in self._source.states("", 1, NamespaceFilter(self._name))
        return self._source.total(wanted) + (is_new and wanted.has(self._name))


def _sources(services: ApiServices, source: _NamespaceNames) -> _NamespaceNames:
    of_kafka = services.kafka_namespace
    return source if of_kafka is None else _WithNamespace(source, str(of_kafka))


async def every_namespace(request: ApiRequest, prefix: str) -> AsyncIterator[list[NamespaceName]]:
    """All namespaces of the catalogue, and of a Kafka cluster, that begin with this and that the client may list, in
    order, thousands at a time.
    """
    source = _sources(request.services, needs_catalog(request.services).counts)
    async for names in _names(request, source, NamespaceFilter(prefix)):
        yield await _allowed(request, names, len(names))


async def _names(
    request: ApiRequest, source: _NamespaceNames, wanted: NamespaceFilter
) -> AsyncIterator[list[str]]:
    """All names of a source in order, thousands at a time."""
    after, read = "", True
    while read:
        names = [*await _reading(request, partial(source.states, after, _READ, wanted))]
        yield names
        read = len(names) == _READ
        after = names[-1] if read else ""


async def _page(request: ApiRequest, counts: _NamespaceNames, more: dict[str, Any]) -> web.Response:
    limit: int = request.values["limit"]
    after: str = request.values["cursor"]
    wanted = _filter_of(request.values)
    found: list[NamespaceName] = []
    states: dict[str, NamespaceState] = {}
    most = min(_READ, limit + 1)  # one more, which says whether there is another page
    while len(found) <= limit:
        some = await _reading(request, partial(counts.states, after, most, wanted))
        names = [*some]
        found += await _allowed(request, names, limit + 1 - len(found))
        states |= {name: state for name, state in some.items() if state is not None}
        if len(names) < most:
            break
        after, most = names[-1], _READ
    page, services = found[:limit], request.services
    following = str(page[-1]) if len(found) > limit else None
    plain = plain_ones(services, request.asker, page)
    sources = sources_of(services, page)
    if request.values["count"]:
        more["total"] = await _total(request, counts, wanted)
    catalog = services.catalog  # which holds the topics of plain ones
    read = partial(catalog.counts.count, plain, states) if plain and catalog is not None else tuple
    body = await _reading(request, lambda: _rendered(page, sources, read(), following, more))
    headers = {} if following is None else {hdrs.LINK: f'<{_link(request, following)}>; rel="next"'}
    return web.Response(body=body, content_type="application/json", headers=headers)


def _filter_of(values: Mapping[str, Any]) -> NamespaceFilter:
    if len(values["contains"]) > _MOST_PARTS:
        raise refused(400, f"parameter contains is given more than {_MOST_PARTS} times")
    return NamespaceFilter(values["prefix"] or "", values["contains"])


async def _total(request: ApiRequest, counts: _NamespaceNames, wanted: NamespaceFilter) -> int | None:
    """The number of namespaces that a client may list; ``None`` if gates are asked about each."""
    pipeline, asker = request.services.pipeline, request.asker
    if pipeline.dispatcher.has_gates:
        return None
    if pipeline.authorization.listed_everywhere(asker):
        return int(await _reading(request, partial(counts.total, wanted)))
    total = 0
    async for names in _names(request, counts, wanted):
        for place, name in enumerate(names):
            if not place % _DECIDED:
                await loop_turn().time()
            total += pipeline.authorization.listed(asker, name) is not False
    return total


async def _reading(request: ApiRequest, read: Any) -> Any:
    """Read the catalogue in a thread."""
    with reading_catalog():
        return await request.services.pipeline.workers.call(request.asker, read)


async def _allowed(request: ApiRequest, names: Sequence[str], most: int) -> list[NamespaceName]:
    """The first of these namespaces, as many as ``most``, that rules and gates let the client list.

    A gate that fails is an error: raises :exc:`~broker_core.errors.ListingFailed`.
    """
    pipeline, asker = request.services.pipeline, request.asker
    listed, has_gates = pipeline.authorization.listed, pipeline.dispatcher.has_gates
    found: list[NamespaceName] = []
    few = _AT_A_TIME if has_gates else _DECIDED
    for first in range(0, len(names), few):
        await loop_turn().time()
        allowed = (name for name in names[first : first + few] if listed(asker, name) is not False)
        some = [*map(NamespaceName.parse, allowed)]
        found += (
            await let_in(pipeline, asker, some, request.deadline, failed=_gate_failed) if has_gates else some
        )
        if len(found) >= most:
            break
    return found[:most]


def _gate_failed(namespace: NamespaceName, failure: ListingFailed) -> None:
    # For the operator alone: to a client it may be the name of a namespace that the gate hides.
    _log.warning(
        "a gate failed about a namespace, and with it a list of namespaces",
        namespace=str(namespace),
        error=failure.message,
    )


def _rendered(
    page: Sequence[NamespaceName],
    sources: Sequence[str],
    counts: Iterable[NamespaceCount],
    following: str | None,
    more: Mapping[str, Any],
) -> bytes:
    known = {str(count.namespace): count for count in counts}
    names = [str(namespace) for namespace in page]
    written = {source: ascii_text(source) for source in set(sources)}
    items = [
        _item(name, written[source], known.get(name)) for name, source in zip(names, sources, strict=True)
    ]
    rest = ascii_json({"next": None if following is None else cursor_of(following), **more})
    return f'{{"items":[{",".join(items)}],{rest[1:]}\n'.encode()


def _item(name: str, source: str, count: NamespaceCount | None) -> str:
    """The JSON of a :class:`_Listed`; its source is in JSON already.

    A template: a page has thousands of them, and models of them took longer than all else of the page.
    """
    if count is None:
        return f'{{"namespace":"{name}","version":null,"source":{source},"changed":null,"counts":null}}'
    persistent, others = count.names
    version = ascii_text(version_text(count.version))
    changed = "null" if count.changed is None else f'"{count.changed}"'
    return (
        f'{{"namespace":"{name}","version":{version},"source":{source},"changed":{changed},"counts":'
        f'{{"persistent":{persistent},"non_persistent":{others},"all":{persistent + others}}}}}'
    )


def mode_counts(persistent: int, non_persistent: int) -> dict[str, int]:
    """The members of :class:`ModeCounts`, from the number of names of each domain."""
    return {
        "persistent": persistent,
        "non_persistent": non_persistent,
        "all": persistent + non_persistent,
    }


def count_members(count: NamespaceCount) -> dict[str, Any]:
    """The members of an object that are known if a namespace is counted."""
    return {
        "version": version_text(count.version),
        "counts": mode_counts(*count.names),
        "changed": count.changed,
    }


def _link(request: ApiRequest, following: str) -> str:
    query = {"limit": request.values["limit"], "cursor": cursor_of(following)}
    return str(request.http.rel_url.update_query(query))
