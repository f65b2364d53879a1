"""``GET /v1/namespaces/{tenant}/{namespace}/changes``: the changes since a version, or as soon as there are any."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Final, Literal

from aiohttp import web
from pydantic import Field

from broker_core.catalog import CatalogLogReader, topic_id_text
from broker_core.change_log import CatalogVersion, Change, ChangeLog, Changes, Gap
from broker_core.errors import InvalidName
from broker_core.names import ListedNames
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject, time_text
from broker_core.servers.http.api.namespaces.plugin_views import exact_log
from broker_core.servers.http.api.operation import Operation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import limit_parameter, number_parameter
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.service import ChangeWatch, read_version, version_text

__all__ = ["operations"]

_LONGEST_WAIT: Final = 30
#: Seconds after which a plugin's log is asked again, which reports nothing itself.
_AGAIN: Final = 5.0


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
    version: str = Field(description="What the changes lead to: the next `since`.")
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


def operations(services: ApiServices) -> list[Operation]:
    """The operation of this module."""
    watch = ChangeWatch(services.pipeline.changes, services.change_log)

    async def list_changes(request: ApiRequest) -> web.StreamResponse:
        return await _answer(request, watch)

    return [
        Operation(
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
            description="Changes of one version are never torn apart, so that there may be more of them than `limit`. "
            "Before a cluster they are what this server's snapshots saw for the client since somebody asked first; no "
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
                    "wait", "Seconds to wait for a change where there is none yet.", 0, _LONGEST_WAIT, 0
                ),
            ),
        )
    ]


def _version(text: str) -> CatalogVersion:
    try:
        return read_version(text)
    except InvalidName:
        raise ValueError("must be a version, ID:NUMBER, as `version` of an earlier answer") from None


async def _answer(request: ApiRequest, watch: ChangeWatch) -> web.Response:
    namespace, since, limit = request.namespace(), request.values["since"], request.values["limit"]
    log = await exact_log(request.services, request.asker, namespace)
    if since is None:
        since = await log.version(namespace)
        return await _response(request, None, Changes(since, since), more=False)
    woken = asyncio.Event()
    leave = watch.watch(namespace, woken.set) if request.values["wait"] else None
    draining = request.services.admission.draining
    ending = asyncio.create_task(draining.wait())  # else the server would not end before the client's wait
    ending.add_done_callback(lambda _: woken.set())
    end = asyncio.get_running_loop().time() + request.values["wait"]
    try:
        while True:
            woken.clear()
            changes, more = await _changes(request, log, since, limit)
            left = end - asyncio.get_running_loop().time()
            if changes or draining.is_set() or left <= 0 or changes.version.number != since.number:
                return await _response(request, since, changes, more=more)
            try:
                async with asyncio.timeout(left if log.name == "catalog" else min(left, _AGAIN)):
                    await woken.wait()
            except TimeoutError:
                pass
            await request.authorize("list")
    finally:
        ending.cancel()
        if leave is not None:
            leave()


async def _changes(
    request: ApiRequest, log: ChangeLog, since: CatalogVersion, limit: int
) -> tuple[Changes, bool]:
    """The changes up to the limit, and whether there are more. Raises the error 410 for a gap."""
    namespace = request.namespace()
    if isinstance(log, CatalogLogReader):
        found = await log.changes(namespace, since, limit=limit)
    else:
        found = await log.changes(namespace, since)
    if isinstance(found, Gap):
        raise refused(410, f"{found.reason}: list the topics anew", version=version_text(found.version))
    if isinstance(log, CatalogLogReader):
        now = await log.version(namespace)
        return found, now.number > found.version.number
    cut = _cut(found, limit)
    return cut, cut is not found


def _cut(changes: Changes, limit: int) -> Changes:
    """The changes of as many versions as have so many together, and of one at least."""
    if len(changes) <= limit:
        return changes
    last = max(changes.changes[limit].version - 1, changes.changes[0].version)
    kept = tuple(change for change in changes if change.version <= last)
    if len(kept) == len(changes):
        return changes
    return Changes(changes.since, CatalogVersion(changes.version.catalog_id, last), kept)


async def _response(
    request: ApiRequest, since: CatalogVersion | None, changes: Changes, *, more: bool
) -> web.Response:
    work = partial(_rendered, since, changes, more=more)
    body = await request.services.pipeline.workers.call(request.asker, work, quick=len(changes) < 20)
    return web.Response(body=body, content_type="application/json")


def _rendered(since: CatalogVersion | None, changes: Changes, *, more: bool) -> bytes:
    content = _Changes(
        since=None if since is None else version_text(since),
        version=version_text(changes.version),
        more=more,
        # Topics that listings never have are not shown here either.
        changes=[_Change.of(change) for change in changes if not change.name.is_system],
    )
    return content.json_line().encode()
