"""Listings from the database: one question, one state of the namespace, one answer.

Most answers take one statement, which reads the version of the namespace and a page of names in one snapshot. An answer
of several pages is read in a transaction with one snapshot. For a repeated question the version is read first: if it is
unchanged, so is the hash of the answer, and a client that sent this hash gets no names.

An answer is never put together of two states, and never shortened. Every failure is an error
(:mod:`broker_core_postgres.connect.failures`); the plugin's ``on_failure`` decides what the broker does about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from broker_core import BoundedCache, ListingRequest, Selection, TopicListingResult
from broker_core.errors import ListingFailed
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core_postgres.changes import VersionHistory
from broker_core_postgres.connect import ServerPools
from broker_core_postgres.listing.listing_assembler import ListingAssembler
from broker_core_postgres.listing.listing_sql import RowSource, first_page_statement, version_statement
from broker_core_postgres.listing.pages import NamesPage, PageTooLarge, fetch_row, following_pages
from broker_core_postgres.listing.query_metrics import QueryMetrics
from broker_core_postgres.listing.reserved_memory import MustWaitForMemory, ReservedMemory
from broker_core_postgres.listing.row_conditions import RowConditions, make_row_conditions
from broker_core_postgres.schema import read_parts
from broker_core_postgres.settings import PostgresSettings

__all__ = ["PostgresLister", "selecting_properties"]

#: Bytes of the largest first page of a question that was never asked before: 32,000 usual names.
_FIRST_PAGE: Final = 1536 * 1024
#: Namespace, mode, the applied pattern, and the selecting properties, sorted.
_QuestionKey: TypeAlias = "tuple[NamespaceName, Mode, str | None, tuple[tuple[str, str], ...]]"
#: Approximate bytes of a :class:`_LastAnswer` with its texts.
_ANSWER_BYTES: Final = 250


@dataclass(frozen=True, slots=True)
class _LastAnswer:
    """The last answer to a question: its version, its hash, and the bytes of names that were read for it.

    If the namespace still has the version, the hash shows whether the answer is unchanged, and no rows are read. An
    entry is replaced as a whole, so that a hash never passes for another version's. The version includes the history's
    epoch (:mod:`..changes.version_history`), so entries are void after the database went back.
    """

    version: str
    topics_hash: str
    read_bytes: int


def selecting_properties(settings: PostgresSettings, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that select topics. Java's clients send all properties of a consumer."""
    if not properties:
        return {}
    return {key: properties[key] for key in settings.property_keys if key in properties}


class _SeveralPages(Exception):
    """The answer has more than one page and needs a transaction. ``page`` is the first page, if it can be used
    there.
    """

    def __init__(self, version: tuple[str, int] | None, page: NamesPage | None) -> None:
        super().__init__("more than a page")
        self.version = version
        self.page = page


class PostgresLister:
    """Answers listing requests, for the event loop. ``trigrams`` is set once the database was looked at."""

    def __init__(
        self,
        server_pools: ServerPools,
        settings: PostgresSettings,
        metrics: QueryMetrics,
        history: VersionHistory,
        *,
        source: RowSource | None = None,
    ) -> None:
        self.server_pools = server_pools
        self.settings = settings
        self.source = source or RowSource()
        self.trigrams = False
        self.hashes: BoundedCache[_QuestionKey, _LastAnswer] = BoundedCache(settings.hash_cache)
        self._metrics = metrics
        self._history = history
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="postgres-rows")

    def close(self) -> None:
        """End the threads after their current work."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def version(self, request: ListingRequest) -> str | None:
        """The current version of the namespace, if the question was asked before; ``None`` otherwise.

        Reading the version costs a quarter of a small listing, so it is read only if an answer may be kept. ``None``
        also if the client's hash is the remembered one, since the listing reads the version itself then; and with
        replicas that may lag, since the listing may be older than the version. Raises
        :exc:`~broker_core.errors.ListingFailed`.
        """
        if not self.source.versions or self.server_pools.chooser.max_lag:
            return None
        known = self.hashes.get(
            _question_key(request, selecting_properties(self.settings, request.properties))
        )
        if known is None or known.topics_hash == request.topics_hash:
            return None
        try:
            return await self._read_version(request)
        except ListingFailed as failure:
            self._metrics.failure(failure.reason)
            raise

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        """The answer. Raises :exc:`~broker_core.errors.ListingFailed`, also for memory that is refused."""
        row_conditions = self.row_conditions(request)
        ignored = len(request.properties) - len(row_conditions.properties)
        if ignored:
            self._metrics.ignored_properties(ignored)
        if self.settings.only_with_properties and not row_conditions.properties:
            return TopicListingResult.pass_through(
                "the question has no selecting properties (only_with_properties)"
            )
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            result, rows = await self.answer(request, row_conditions)
        except ListingFailed as failure:
            self._metrics.failure(failure.reason)
            self._metrics.query(row_conditions.kind, "failed", clock() - started)
            raise
        outcome = "not_loaded" if result.is_pass_through else "listed" if rows is not None else "unchanged"
        self._metrics.query(row_conditions.kind, outcome, clock() - started, rows or 0)
        return result

    def row_conditions(self, request: ListingRequest) -> RowConditions:
        """The conditions of a request's rows."""
        pairs = selecting_properties(self.settings, request.properties)
        return make_row_conditions(
            request.namespace, request.mode, _applied_pattern(request), pairs, trigrams=self.trigrams
        )

    async def answer(
        self, request: ListingRequest, row_conditions: RowConditions
    ) -> tuple[TopicListingResult, int | None]:
        """The answer, and the number of rows read for it; ``None`` rows if the hash was known."""
        question = _question_key(request, row_conditions.properties)
        known = self.hashes.get(question)
        if known is not None and known.topics_hash == request.topics_hash:
            if await self._read_version(request) == known.version:
                return TopicListingResult.unchanged(known.topics_hash), None
        memory = ReservedMemory(request.reserve)
        expected = min(known.read_bytes + 4096, 16 * _FIRST_PAGE) if known is not None else _FIRST_PAGE
        await memory.reserve(ReservedMemory.bytes_for_page(expected))
        several: _SeveralPages | None = None
        while True:
            read_at, epoch = asyncio.get_running_loop().time(), self._history.epoch
            try:
                if several is None:
                    version, assembler = await self._one_page(request, row_conditions, memory)
                else:
                    version, assembler = await self._many_pages(request, row_conditions, memory, several)
            except _SeveralPages as more:
                several = more.with_traceback(None)
                continue
            except (PageTooLarge, MustWaitForMemory) as more_memory:
                wanted = more_memory.with_traceback(None)
            else:
                if assembler is None:
                    return TopicListingResult.pass_through("the namespace was never loaded"), 0
                topics = await assembler.finish()
                name = self._remember(question, request, version, topics, assembler, read_at, epoch)
                filtered = _applied_pattern(request) is not None
                return TopicListingResult.success(
                    topics, filtered=filtered, version=name, owned=True
                ), assembler.rows
            # Outside of the except clause: a traceback would keep the pages that were read alive while this waits.
            if isinstance(wanted, MustWaitForMemory):
                await memory.wait_for(wanted)
            else:
                await memory.reserve(ReservedMemory.bytes_for_page(wanted.size))

    def _remember(
        self,
        question: _QuestionKey,
        request: ListingRequest,
        version: tuple[str, int] | None,
        topics: Selection,
        assembler: ListingAssembler,
        read_at: float,
        epoch: int,
    ) -> str | None:
        """Remember the hash. Returns the version for the broker, ``None`` if the answer must not be kept."""
        if version is None or not self._history.record(request.namespace, *version, read_at=read_at):
            return None
        name = self._history.version(*version, epoch)
        self.hashes.put(
            question, _LastAnswer(name, topics.topics_hash, assembler.read_bytes), _key_bytes(question)
        )
        return name

    async def source_for(self, row_conditions: RowConditions, connection: Any) -> RowSource:
        """The source of the rows in the snapshot of the connection's transaction."""
        if not row_conditions.like_patterns or not self.source.own_index or row_conditions.matches_nothing:
            return self.source
        return replace(self.source, parts=await read_parts(connection))

    async def _read_version(self, request: ListingRequest) -> str | None:
        """The version of the namespace, by one index look-up; ``None`` if it was never loaded, or went back."""
        read_at, epoch = asyncio.get_running_loop().time(), self._history.epoch
        namespace = str(request.namespace)
        statement = version_statement(namespace)
        row = await self.server_pools.read(
            lambda connection: fetch_row(connection, statement),
            deadline=request.deadline,
            namespace=namespace,
        )
        if row is None:
            return None
        number, catalog_id = row["version"], str(row["catalog_id"])
        if not self._history.record(request.namespace, catalog_id, number, read_at=read_at):
            return None
        return self._history.version(catalog_id, number, epoch)

    async def _one_page(
        self, request: ListingRequest, row_conditions: RowConditions, memory: ReservedMemory
    ) -> tuple[tuple[str, int] | None, ListingAssembler | None]:
        """Version and names by one statement; no names for a namespace that was never loaded."""
        search = row_conditions.kind == "search"

        async def read(connection: Any) -> tuple[tuple[str, int] | None, ListingAssembler | None]:
            source = await self.source_for(row_conditions, connection)
            row = await fetch_row(
                connection,
                version_statement(row_conditions.namespace)
                if row_conditions.matches_nothing and source.versions
                else first_page_statement(
                    row_conditions,
                    source,
                    memory.page_bytes,
                    most_names=0 if row_conditions.matches_nothing else None,
                ),
            )
            if row is None:
                return None, None
            version = _version_of(row)
            assembler = self._assembler(request, row_conditions)
            if row_conditions.matches_nothing:
                return version, assembler
            page = NamesPage.of(row)
            if page.full and not search:
                raise _SeveralPages(version, page if row_conditions.kind == "namespace" else None)
            if not page.full:
                await assembler.add(page)
                return version, assembler
            async for each in following_pages(
                connection, row_conditions, source, memory, lambda: assembler.nbytes
            ):
                await assembler.add(each)
            await assembler.wait()
            return version, assembler

        return await self.server_pools.read(
            read, deadline=request.deadline, namespace=row_conditions.namespace, snapshot=search
        )

    async def _many_pages(
        self,
        request: ListingRequest,
        row_conditions: RowConditions,
        memory: ReservedMemory,
        several: _SeveralPages,
    ) -> tuple[tuple[str, int] | None, ListingAssembler | None]:
        """A whole namespace, or ranges of it, in one transaction with one snapshot."""

        async def read(connection: Any) -> tuple[tuple[str, int] | None, ListingAssembler | None]:
            version = None
            if self.source.versions:
                row = await fetch_row(connection, version_statement(row_conditions.namespace))
                if row is None:
                    return None, None
                version = _version_of(row)
            assembler = self._assembler(request, row_conditions)
            # The first page is from another transaction. It counts only if both transactions saw one version.
            first = several.page if version is not None and several.version == version else None
            if first is not None:
                await memory.reserve_now(ReservedMemory.bytes_for_page(first.size))
                await assembler.add(first)
            async for page in following_pages(
                connection, row_conditions, self.source, memory, lambda: assembler.nbytes, first
            ):
                await assembler.add(page)
            await assembler.wait()
            return version, assembler

        return await self.server_pools.read(
            read, deadline=request.deadline, namespace=row_conditions.namespace, snapshot=True
        )

    def _assembler(self, request: ListingRequest, row_conditions: RowConditions) -> ListingAssembler:
        return ListingAssembler(request, finish=row_conditions.needs_re2, threads=self._threads)


def _applied_pattern(request: ListingRequest) -> TopicsPattern | None:
    """The pattern to apply; ``None`` also for one that RE2 does not support, which the core handles."""
    pattern = request.pattern
    return pattern if pattern is not None and pattern.supported else None


def _question_key(request: ListingRequest, properties: Mapping[str, str]) -> _QuestionKey:
    pattern = _applied_pattern(request)
    return (
        request.namespace,
        request.mode,
        None if pattern is None else pattern.text,
        tuple(sorted(properties.items())),
    )


def _version_of(row: Any) -> tuple[str, int] | None:
    return None if row["version"] is None else (str(row["catalog_id"]), int(row["version"]))


def _key_bytes(question: _QuestionKey) -> int:
    """Bytes of a remembered question, beside the overhead of any cache entry."""
    _, _, pattern, pairs = question
    return 4 * (len(pattern or "") + sum(len(key) + len(value) for key, value in pairs)) + _ANSWER_BYTES
