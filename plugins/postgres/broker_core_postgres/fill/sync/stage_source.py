"""Staging a source: reading several namespaces at once into the temporary table, and noting which cannot be read.

The table belongs to the connection, so that no transaction stays open for the minutes that a large cluster takes.
pgbouncer therefore has to pool sessions, not transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, Final

from broker_core.errors import BrokerCoreError, InvalidName
from broker_core.names import NamespaceName
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.merge import namespaces_of_database
from broker_core_postgres.fill.staged_configs import copy_configs
from broker_core_postgres.fill.staged_ids import copy_ids
from broker_core_postgres.fill.staging_table import StagingTables, copy_rows
from broker_core_postgres.fill.storage_limits import first_too_long, longest_local_name
from broker_core_postgres.fill.sync.for_each import for_each
from broker_core_postgres.fill.sync.mirror_source import MirrorSource, NamesOfDomain, NamespaceTopics
from broker_core_postgres.fill.sync.scope import Scope
from broker_core_postgres.fill.temporary_table import StagedTable

__all__ = ["StagedSource", "stage_source"]

_ROWS_A_BLOCK: Final = 50_000


@dataclass(slots=True)
class StagedSource:
    """The result of reading a source. ``namespaces`` are staged; ones that the source no longer has are staged as
    empty.

    ``has_configs``: the configs of all topics were read. ``failed`` has the reason for each namespace or tenant that
    could not be read, ``unread`` for each topic whose properties could not be read.
    """

    namespaces: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    names: int = 0
    has_configs: bool = False


async def stage_source(
    connection: Any,
    source: MirrorSource,
    scope: Scope,
    *,
    parallel: int = 4,
    progress: Callable[[int, int, int], None] | None = None,
) -> StagedSource:
    """Stage all namespaces of the scope that the source or the database has.

    ``progress`` is called with (namespaces read, namespaces in all, listed names so far). A namespace that cannot be
    read is in ``failed``. Raises if not even the list of namespaces can be read.
    """
    staging = StagingTables(connection)
    await staging.each(partial(StagedTable.create, keep=True))
    inventory = await source.inventory(scope)
    staged = StagedSource(failed=dict(inventory.failed), has_configs=source.has_configs)
    copying = asyncio.Lock()
    done = 0

    async def read(namespace: NamespaceName) -> None:
        nonlocal done
        try:
            topics = await source.read_namespace(namespace)
            _check(topics)
        except BrokerCoreError as error:
            staged.failed[str(namespace)] = str(error)
        else:
            async with copying:
                await staging.names.copy(_blocks(topics))
                await staging.ids.copy(_of_topics(topics, attrgetter("ids"), copy_ids))
                await staging.configs.copy(_of_topics(topics, attrgetter("configs"), copy_configs))
            staged.names += len(topics)
            staged.unread.update(topics.unread)
            staged.namespaces.append(str(namespace))
        done += 1
        if progress is not None:
            progress(done, len(inventory.namespaces), staged.names)

    await for_each(inventory.namespaces, read, parallel)
    if inventory.namespaces and not staged.namespaces:
        raise FillingFailed(
            f"No namespace of the {source.name} can be read: {next(iter(staged.failed.values()))}"
        )
    there = set(map(str, inventory.namespaces))
    for name in await namespaces_of_database(connection):
        namespace = _parsed(name)
        if (
            namespace is not None
            and name not in there
            and scope.covers(namespace)
            and namespace.tenant not in inventory.failed
        ):
            staged.namespaces.append(name)
    staged.namespaces.sort()
    await staging.each(StagedTable.analyze)
    return staged


def _check(topics: NamespaceTopics) -> None:
    for part in topics.parts:
        name = first_too_long(topics.namespace, part.names)
        if name is not None:
            raise FillingFailed(
                f"The name of the {part.domain} topic {name[:100]!r}... has more bytes than the database can hold, "
                f"{longest_local_name(topics.namespace)}"
            )


async def _blocks(topics: NamespaceTopics) -> AsyncIterator[bytes]:
    for part in topics.parts:
        for start in range(0, len(part.names), _ROWS_A_BLOCK):
            rows = slice(start, start + _ROWS_A_BLOCK)
            yield copy_rows(
                str(topics.namespace),
                part.domain,
                part.names[rows],
                part.topics[rows],
                part.properties[rows],
            )


async def _of_topics(
    topics: NamespaceTopics,
    given: Callable[[NamesOfDomain], Mapping[str, Any]],
    copy: Callable[[str, str, Mapping[str, Any]], bytes],
) -> AsyncIterator[bytes]:
    """Blocks of what is ``given`` for topics, by their local names."""
    for part in topics.parts:
        every = iter(given(part).items())
        while rows := dict(islice(every, _ROWS_A_BLOCK)):
            yield copy(str(topics.namespace), part.domain, rows)


def _parsed(name: str) -> NamespaceName | None:
    """Parse a namespace of the database; ``None`` for an invalid name, which no cluster can have."""
    try:
        return NamespaceName.parse(name)
    except InvalidName:
        return None
