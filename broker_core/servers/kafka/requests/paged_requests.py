"""Requests for a page: refusals of limits and cursors, calls of the handler by parts, the page of the answers.

A handler is asked for a part of the names in the request, as long as the page is not full, and answers as always. All
topics of a namespace are cut into pages when they are listed (:mod:`.topic_pages`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from typing import Any, Final, cast

from broker_core.listing import utf16_key
from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace, without_page
from broker_core.servers.kafka.pages.kept_answers import AnswerAhead
from broker_core.servers.kafka.pages.page_rows import refusal_of
from broker_core.servers.kafka.pages.page_shapes import LOG_DIR, PageShape, shape_of
from broker_core.servers.kafka.pages.raw_units import RawUnits
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, or_close
from broker_core.servers.kafka.requests.config_resource_types import is_known
from broker_core.servers.kafka.requests.page_parts import PageParts
from broker_core.servers.kafka.requests.requested_names import RequestedNames, requested_names
from broker_core.upstream.kafka import ClusterTopics
from broker_core.wire.kafka import ZERO_ID, ErrorCode, Fields, RawRows

__all__ = ["with_pages"]

_TOPIC: Final = "topic_name"
_DIRECTORY: Final = {"log_dir": LOG_DIR}
_UNUSABLE: Final = "The page that is asked for cannot be: {}."


class _Refused(Exception):
    """The request has no page, for a reason that completes a sentence."""


def with_pages(row: HandlerRow) -> HandlerRow:
    """The row, with pages in the versions that have them."""
    api = row.api
    if shape_of(api, api.versions.last) is None:
        return row

    def answer(call: KafkaCall) -> Fields | Coroutine[Any, Any, Fields]:
        shape = _shape(call, row)
        return row.answer(call) if shape is None else paged(call, shape)

    async def paged(call: KafkaCall, shape: PageShape) -> Fields:
        try:
            page = _page(call, shape)
            if shape.one_each and page.start is None and await _has_unknown(call):
                # Kafka refuses the whole request, so the part of a page cannot be asked for.
                return await row.answered(replace(call, body=without_page(call.body)))
            return await _Paging(row, call, shape, page).answer()
        except _Refused as refused:
            fields = refusal_of(api, shape, call.body, ErrorCode.INVALID_REQUEST, _UNUSABLE.format(refused))
            return await _in_each_directory(row, call, fields) if shape.lone == _DIRECTORY else fields

    return replace(row, answer=answer)


async def _has_unknown(call: KafkaCall) -> bool:
    """Whether a request for configs names a resource of an unknown type."""
    rows = call.body["resources"]

    def has() -> bool:
        is_raw = isinstance(rows, RawRows)
        kinds = rows.bytes_of("resource_type") if is_raw else [row["resource_type"] for row in rows]
        return not all(map(is_known, {*kinds}))

    return await call.off_loop(len(rows), has)


async def _in_each_directory(row: HandlerRow, call: KafkaCall, fields: Fields) -> Fields:
    """A refusal in a row for each directory, if the answer has directories, of the node at whose port the client is."""
    if "error_code" in fields or call.services.front is None or call.node.of_cluster is None:
        return fields
    (failed,) = fields["results"]
    answer = await row.answered(replace(call, body=without_page({**call.body, "topics": []})))
    return {"results": [{**failed, "log_dir": each["log_dir"]} for each in answer["results"]]}


def _shape(call: KafkaCall, row: HandlerRow) -> PageShape | None:
    """The pages of a request that asks for one."""
    shape = shape_of(row.api, call.version)
    if shape is None or shape.as_kafka:
        return shape
    body = call.body
    return None if body["response_pagination_limit"] is None and body["cursor"] is None else shape


def _page(call: KafkaCall, shape: PageShape) -> AnswerPage:
    """The page that a request asks for. Raises :exc:`_Refused`."""
    settings, cursor = call.services.options.kafka, call.body["cursor"]
    most = settings.max_request_pagination_size_limit
    if shape.as_kafka:
        most = settings.max_request_partition_size_limit or most
        wanted: int | None = call.body["response_partition_limit"]
    else:
        wanted = call.body["response_pagination_limit"]
        if wanted is not None and wanted < 0:
            raise _Refused("its limit is negative")
    start = None
    if cursor is not None:
        if not cursor:
            raise _Refused("its cursor cannot be read")
        key = tuple(cursor[each] for each in shape.fields)
        if any(isinstance(value, int) and value < 0 for value in key):
            raise _Refused("its cursor has a negative number")
        start = UnitPlace(key, cursor.get("topic_id", ZERO_ID))
    limit = most if wanted is None else max(1, min(wanted, most))
    beginning = shape.beginning
    if shape.of_body:
        beginning = (call.body[shape.of_body], *beginning[1:])
    return AnswerPage(shape.fields, beginning, limit, start, as_kafka=shape.as_kafka)


class _Paging:
    """One request for a page."""

    def __init__(self, row: HandlerRow, call: KafkaCall, shape: PageShape, page: AnswerPage) -> None:
        self._row = row
        self._call = replace(call, page=page)
        self._shape = shape
        self._page = page

    async def answer(self) -> Fields:
        """The answer. Raises :exc:`_Refused` for a cursor of another request."""
        shape, page = self._shape, self._page
        requested = await requested_names(self._call, self._row.api, shape, page)
        self._check(requested)
        if shape.one_each:
            fields = await self._part(requested, requested.filling())
            rows = fields[shape.answered[0].array]
            units = RawUnits.of(shape, rows) if isinstance(rows, RawRows) else None
            if units is not None:
                fields = {**fields, shape.answered[0].array: units.encoded(0, len(units))}
        else:
            found = await self._filled(requested) or await self._found(requested)
            while found is None:
                found = await self._found(requested)
            fields = found
        return {**fields, "next_cursor": page.next_cursor}

    def _check(self, requested: RequestedNames) -> None:
        start, shape = self._page.start, self._shape
        if start is None:
            return
        first = start.key[0]
        if (requested or shape.of_body) and (first or shape.as_kafka):
            is_body = shape.of_body and first == self._call.body[shape.of_body]
            if not is_body and not requested.has(first):
                raise _Refused("its cursor names nothing that is asked for")
        is_own = self._call.services.front is None
        if is_own and shape.fields[-1] == "log_dir" and utf16_key(start.key[2]) > utf16_key(LOG_DIR):
            # The one directory is before it.
            self._page.start = start._replace(key=(first, start.key[1] + 1, ""))

    async def _filled(self, requested: RequestedNames) -> Fields | None:
        """The page, if the handler itself fills it with the named items."""
        fill = self._row.fill
        rows = None if fill is None or not len(requested) else self._call.body[self._shape.requested[0].array]
        return await fill(self._call, rows) if fill is not None and isinstance(rows, RawRows) else None

    async def _found(self, requested: RequestedNames) -> Fields | None:
        """The page; ``None`` if it has to begin anew, since its first topic was recreated meanwhile."""
        shape, page = self._shape, self._page
        begun = page.start
        topics = await self._cluster_topics()
        parts = PageParts(self._call, shape, page)
        for number, part in enumerate(requested.parts()):
            part_of_page = self._added(parts, requested, part, topics)
            if number or topics is None or self._is_first_of_topic:
                fields = await part_of_page
            else:
                anew, fields = await _both(self._start_of_another(), part_of_page)
                if anew is not None:  # now that nothing fills the page any more
                    page.begin_anew(anew)
                    return None
            if _is_refused(shape, fields):
                return fields
            if page.is_filled:  # filled by the listing of topics
                if shape.fields[-1] == "log_dir" and page.following is not None:
                    name, partition, _ = page.following.key
                    page.following = page.following._replace(key=(name, partition, LOG_DIR))
                return fields if begun is None else _without_empty(fields)
            if topics is None and self._is_made_anew():
                return None
            requested.answered(parts.size, parts.nbytes)
            if page.following is not None:
                break
        if page.following is not None and topics is not None:
            if self._goes_on_in(page.following) and (anew := await self._start_of_another()) is not None:
                page.begin_anew(anew)
                return None
            of_answer = topics if page.whole is None else page.whole.topics or topics
            page.following = await self._with_id(page.following, of_answer)
        if isinstance(page.whole, AnswerAhead):
            page.whole.following = page.following
        return await parts.message()

    async def _added(
        self, parts: PageParts, requested: RequestedNames, part: Any, topics: ClusterTopics | None
    ) -> Fields:
        """The answer to a part of the request, of which the page has got its units, unless it is filled already."""
        page = self._page
        fields = await (self._part(requested, part) if len(requested) else self._row.answered(self._call))
        if page.whole is not None:
            page.whole.topics = page.whole.topics or topics
        if _is_refused(self._shape, fields) or page.is_filled:
            return fields
        if topics is not None and self._shape.nameless:
            await self._note_names(fields)
        await parts.add(fields)
        return fields

    async def _cluster_topics(self) -> ClusterTopics | None:
        """Before a cluster, the topics of the snapshot, if its answers have no ids of topics beside their names.

        They are from before the answer: a topic that is recreated meanwhile has another id on the next page.
        """
        call, shape = self._call, self._shape
        front = call.services.front
        if front is None or _TOPIC not in shape.fields or shape.by_id or shape.as_kafka:
            return None
        with or_close():
            return await front.topics(call.asker)

    @property
    def _is_first_of_topic(self) -> bool:
        """Whether the page begins with the beginning of its first topic."""
        start = self._page.start
        return start is not None and start.key == self._first_of(start).key

    def _goes_on_in(self, following: UnitPlace) -> bool:
        """Whether the next page begins in a topic that this page has from its beginning on."""
        start, at = self._page.start, self._shape.fields.index(_TOPIC) + 1
        return self._is_first_of_topic and start is not None and following.key[:at] == start.key[:at]

    async def _start_of_another(self) -> UnitPlace | None:
        """The beginning of the first topic, if it is another one than the former page ended in.

        If the page begins within the topic, this is asked beside it, and else only if the next page does. A page of
        another topic is made anew.
        """
        start, front = self._page.start, self._call.services.front
        if front is None or start is None or start.topic_id == ZERO_ID:
            return None
        name = start.key[self._shape.fields.index(_TOPIC)]
        if await self._hidden([name]):
            return None  # as of a topic that is not there
        with or_close():
            now = await front.topic_id(self._call.asker, name)
        if now in (ZERO_ID, start.topic_id):
            return None
        front.changed()
        return self._first_of(start)._replace(topic_id=now)

    def _first_of(self, start: UnitPlace) -> UnitPlace:
        """The place of the first unit of the topic of a place."""
        at = self._shape.fields.index(_TOPIC) + 1
        return start._replace(key=(*start.key[:at], *self._shape.beginning[at:]))

    async def _note_names(self, fields: Fields) -> None:
        """Note the names of the topics of an answer for the page."""
        call = self._call
        assert call.services.front is not None
        ids = {row["topic_id"] for group in fields["groups"] for row in group["topics"]}
        with or_close():
            names = await call.services.front.topic_names(call.asker, ids) if ids else {}
        gone = await self._hidden(names.values())
        for topic_id, name in names.items():
            if name not in gone:  # its place would say that it is there
                self._page.note(name, topic_id)

    async def _with_id(self, place: UnitPlace, topics: ClusterTopics) -> UnitPlace:
        """A place with the id of its topic: the one that the page began with, or the snapshot's if it is shown."""
        start, at = self._page.start, self._shape.fields.index(_TOPIC)
        name = place.key[at]
        if name and start is not None and start.key[at] == name and start.topic_id != ZERO_ID:
            return place._replace(topic_id=start.topic_id)
        if not name:
            return place
        return place._replace(topic_id=ZERO_ID if await self._hidden([name]) else topics.id_of(name))

    async def _hidden(self, names: Iterable[str]) -> set[str]:
        """The topics of the cluster among these that are hidden from the client, which may have named them."""
        call, wanted = self._call, [*names]
        if not call.may_hide_topics:
            return set()
        rows = await call.services.named.by_name(replace(call, page=None), wanted, operation=None)
        return {name for name, row in zip(wanted, rows, strict=True) if row.error}

    async def _part(self, requested: RequestedNames, part: Any) -> Fields:
        """The handler's answer to a part of the request."""
        page, front = self._page, self._call.services.front
        page.whole = requested.ahead(part)
        if page.whole is not None:
            return page.whole.fields
        began, mark = asyncio.get_running_loop().time(), 0 if front is None else front.aheads.mark
        fields = await self._row.answered(replace(self._call, body=await requested.body(part)))
        page.whole = requested.keep(part, fields, began, mark) or page.whole
        return fields

    def _is_made_anew(self) -> bool:
        """Whether the page begins anew, with the whole first topic: it was recreated since the former page."""
        start = self._page.start
        if start is None or start.topic_id == ZERO_ID:
            return False
        known = self._page.topic_ids.get(start.key[self._shape.fields.index(_TOPIC)], start.topic_id)
        begin = self._first_of(start)
        if known == start.topic_id or begin.key == start.key:
            return False
        self._page.begin_anew(begin._replace(topic_id=known))
        return True


def _is_refused(shape: PageShape, fields: Fields) -> bool:
    """Whether an answer is the one directory with the error of a refused request: it is before all cursors, and without
    it the page would be the empty end of a pass.
    """
    rows = fields.get(shape.answered[0].array) if shape.lone == _DIRECTORY else None
    is_alone = isinstance(rows, list) and len(rows) == 1 and bool(rows[0].get("error_code"))
    return is_alone and rows is not None and rows[0]["log_dir"] == LOG_DIR


async def _both(
    check: Coroutine[Any, Any, UnitPlace | None], answer: Coroutine[Any, Any, Fields]
) -> tuple[UnitPlace | None, Fields]:
    """The results of both, which run at the same time; the first error once both have ended."""
    found, fields = await asyncio.gather(check, answer, return_exceptions=True)
    for each in (fields, found):
        if isinstance(each, BaseException):
            raise each
    return cast("tuple[UnitPlace | None, Fields]", (found, fields))


def _without_empty(fields: Fields) -> Fields:
    """The answer without a directory that has no topics: it was on the first page."""
    results = fields.get("results")
    return (
        fields if results is None else fields | {"results": [row for row in results if row["topics"].count]}
    )
