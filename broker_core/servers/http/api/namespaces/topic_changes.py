"""``GET /v1/namespaces/{tenant}/{namespace}/changes``: the changes since a version, or as soon as there are any."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import chain
from typing import Annotated, Final, Literal, NamedTuple

from aiohttp import web
from pydantic import Field

from broker_core.catalog import CatalogLogReader, SpanBound, topic_id_text
from broker_core.change_log import CatalogVersion, Change, ChangeLog, Changes, Gap, read_version, version_text
from broker_core.compact_json import ascii_text
from broker_core.concurrency import EACH_CHANGE, ended_within
from broker_core.errors import InvalidName
from broker_core.names import ListedNames
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.bounded_answer import MOST_BYTES, HeldAnswer, filled, json_of
from broker_core.servers.http.api.json_object import JsonObject, time_text
from broker_core.servers.http.api.namespaces.plugin_views import exact_log
from broker_core.servers.http.api.operation import HttpOperation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import limit_parameter, number_parameter
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.service import ChangeWatch

__all__ = ["operations"]

_LONGEST_WAIT: Final = 30
#: Seconds after which a plugin's log is asked again, which reports nothing itself.
_AGAIN: Final = 5.0
#: Bytes of JSON that the changes of one version take at the most: a new listing costs no more.
_MOST_ALONE: Final = 24 * MOST_BYTES
#: How many copies of the changes are in memory at once while they are read and made into JSON.
_COPIES: Final = 4


class _Names(JsonObject):
    plain: bool = Field(description="Whether the name of the topic itself is among them.")
    partitions: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = Field(
        description="Ranges of partitions: the first and the last index of each."
    )

    @classmethod
    def of(cls, listed: ListedNames) -> _Names:
        return cls(plain=listed.plain, partitions=[list(each) for each in listed.ranges])


class _Change(JsonObject):
    version: int
    operation: Literal["create", "update", "delete"]
    topic: str = Field(description="The full name, without partition suffix.")
    topic_id: str = Field(
        description="A name that is made anew is another topic, with another id. Of a cluster's topics, which have no "
        "ids, it is made from the name."
    )
    added: _Names = Field(description="The names that are listed since.")
    removed: _Names = Field(description="The names that are not listed any more.")
    properties: dict[str, str]
    configs: dict[str, str]
    time: str = Field(json_schema_extra={"format": "date-time"})

    @classmethod
    def of(cls, change: Change) -> _Change:
        return cls(
            version=change.version,
            operation=change.operation.value,
            topic=str(change.name),
            topic_id=topic_id_text(change.topic_id),
            added=_Names.of(change.listed_after.without(change.listed_before)),
            removed=_Names.of(change.listed_before.without(change.listed_after)),
            properties=dict(change.properties_after),
            configs=dict(change.configs_after),
            time=time_text(change.time),
        )


class _Changes(JsonObject):
    since: str | None = Field(description="The version that was asked for.")
    version: str = Field(description="The version after these changes: the next `since`.")
    more: bool = Field(description="Whether there are more changes already.")
    changes: list[_Change] = Field(description="The oldest is first.")


_EXAMPLE: Final = {
    "since": "A1sqh0DGTTO5k7Gf3O4HIA:0",
    "version": "A1sqh0DGTTO5k7Gf3O4HIA:1.a3eedc6b04209c5daba6f027",
    "more": False,
    "changes": [
        {
            "version": 1,
            "operation": "create",
            "topic": "persistent://public/default/orders",
            "topic_id": "pLW3lPqvQYyE8maO_j3eRw",
            "added": {"plain": False, "partitions": [[0, 1]]},
            "removed": {"plain": False, "partitions": []},
            "properties": {"region": "eu"},
            "configs": {},
            "time": "2026-11-22T18:49:05.694+00:00",
        }
    ],
}


def operations(services: ApiServices) -> list[HttpOperation]:
    """The operation of this module."""
    watch = ChangeWatch(services.pipeline.changes, services.change_log)

    async def list_changes(request: ApiRequest) -> web.StreamResponse:
        return await _answer(request, watch)

    return [
        HttpOperation(
            "GET",
            "/v1/namespaces/{tenant}/{namespace}/changes",
            "listChanges",
            "The changes of topics since a version.",
            Right.LIST,
            list_changes,
            {
                200: Reply(
                    "The changes; none without `since`.",
                    {"application/json": _Changes},
                    examples={"application/json": _EXAMPLE},
                ),
                409: Reply(
                    "No change log has exactly what the client is shown of this namespace (CONFLICT)."
                ),
                410: Reply(
                    "The log does not reach back to that version: list anew. `version` is the one now."
                ),
                501: Reply("Brokers hold the topics, and this server has no snapshots of them."),
            },
            description="An answer has 1 MiB of changes at the most, whatever the `limit`. Changes of one version are "
            "never torn apart, so that there may be more of them; only a version of more than 24 MiB is a 410. "
            "Before a cluster they are what this server's snapshots saw for the client since the first request; no "
            "such version outlives the server.",
            tag="namespaces",
            parameters=(
                Parameter(
                    "since",
                    "A version of this namespace: `version` of an earlier answer (not of a single change).",
                    read=_version,
                    schema={
                        "type": "string",
                        "format": "version",
                        "pattern": r"^[A-Za-z0-9_-]{22}:[0-9]+(\.[A-Za-z0-9_-]+)?$",
                    },
                ),
                limit_parameter("Changes at the most, as far as a version has no more."),
                number_parameter(
                    "wait", "Seconds to wait for a change if there is none yet.", 0, _LONGEST_WAIT, 0
                ),
            ),
        )
    ]


def _version(text: str) -> CatalogVersion:
    try:
        return read_version(text)
    except InvalidName:
        raise ValueError("must be a version, ID:NUMBER, as `version` of an earlier answer") from None


async def _answer(request: ApiRequest, watch: ChangeWatch) -> web.StreamResponse:
    namespace, since = request.namespace(), request.values["since"]
    log = await exact_log(request.services, request.asker, namespace)
    async with HeldAnswer(request) as held:
        if since is None:
            since = await log.version(namespace)
            return await _write(held, None, _Found(Changes(since, since), more=False))
        woken = asyncio.Event()
        leave = watch.watch(namespace, woken.set) if request.values["wait"] else None
        admission = request.services.admission
        end = asyncio.get_running_loop().time() + request.values["wait"]
        try:
            with admission.ended_by(woken.set):  # else the server would not end before the client's wait
                while True:
                    woken.clear()
                    found = await _find(request, held, log, since)
                    left = end - asyncio.get_running_loop().time()
                    moved = found.changes.version.number != since.number
                    if moved or admission.draining or left <= 0:
                        return await _write(held, since, found)
                    await ended_within(left if log.name == "catalog" else min(left, _AGAIN), woken.wait())
                    await request.authorize("list")
        finally:
            if leave is not None:
                leave()


class _Found(NamedTuple):
    changes: Changes
    more: bool


async def _find(request: ApiRequest, held: HeldAnswer, log: ChangeLog, since: CatalogVersion) -> _Found:
    """The changes that one answer may have, and whether there are more; permits for them are held from then on.

    Raises the error 410 for a gap.
    """
    namespace = request.namespace()
    within = SpanBound(request.values["limit"], MOST_BYTES, _MOST_ALONE)
    if isinstance(log, CatalogLogReader):
        span = await log.span(namespace, since, within)
        if isinstance(span, Gap):
            raise _gone(span)
        if span.end.number == since.number:
            return _Found(Changes(since, span.end), more=False)
        await held.hold(_COPIES * span.size)
        return _Found(_known(await log.changes_of(namespace, span)), span.more)
    changes = _known(await log.changes(namespace, since))
    cut = within.cut((each.version, _size(each)) for each in changes)
    if cut.last is None:
        raise _gone(Gap(since, changes.version, "the next version alone has too much"))
    await held.hold(_COPIES * cut.size)
    if not cut.more:
        return _Found(changes, more=False)
    kept = tuple(each for each in changes if each.version <= cut.last)
    end = CatalogVersion(changes.version.catalog_id, cut.last)
    return _Found(Changes(since, end, kept), more=True)


def _known(found: Changes | Gap) -> Changes:
    if isinstance(found, Gap):
        raise _gone(found)
    return found


def _gone(gap: Gap) -> RequestRefused:
    return refused(410, f"{gap.reason}: list the topics anew", version=version_text(gap.version))


def _size(change: Change) -> int:
    """The bytes that a change takes in JSON, as the catalogue has them of its own."""
    texts = (
        change.name.local,
        *chain.from_iterable(change.properties_after.items()),
        *chain.from_iterable(change.configs_after.items()),
    )
    return 320 + sum(len(ascii_text(text)) for text in texts)


async def _write(held: HeldAnswer, since: CatalogVersion | None, found: _Found) -> web.StreamResponse:
    return await held.write(partial(_rendered, since, found), EACH_CHANGE * len(found.changes))


def _rendered(since: CatalogVersion | None, found: _Found) -> bytes:
    content = _Changes(
        since=None if since is None else version_text(since),
        version=version_text(found.changes.version),
        more=found.more,
        changes=[],
    )
    # Topics that listings never have are not shown here either.
    shown = (_Change.of(change) for change in found.changes if not change.name.is_system)
    return filled(content, "changes", map(json_of, shown))
