"""Reading a source into the temporary table, some namespaces at once, and knowing of which nobody knows.

The table belongs to the connection, since reading a large cluster takes minutes: no transaction stays open for it, and
pgbouncer has to pool sessions, not transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from broker_core.errors import BrokerCoreError, InvalidName
from broker_core.names import NamespaceName
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.merge import namespaces_of_database
from broker_core_postgres.fill.staging_table import Staging, copy_lines
from broker_core_postgres.fill.storage_limits import longest_name, too_long
from broker_core_postgres.fill.sync.cluster_source import each_of
from broker_core_postgres.fill.sync.mirror_source import Contents, Source
from broker_core_postgres.fill.sync.scope import Scope

__all__ = ["Gathered", "gather"]

_ROWS_A_BLOCK: Final = 50_000


@dataclass(slots=True)
class Gathered:
    """What was read. ``namespaces`` are known and staged, those that the source has no longer among them (as empty).

    ``failed`` says by namespace, or tenant, what could not be read, ``unread`` by topic whose properties.
    """

    namespaces: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    names: int = 0


async def gather(
    connection: Any,
    source: Source,
    scope: Scope,
    *,
    parallel: int = 4,
    progress: Callable[[int, int, int], None] | None = None,
) -> Gathered:
    """Stage all namespaces of the scope, of the source and of the database.

    ``progress`` is called with (namespaces read, namespaces in all, listed names so far). A namespace that cannot be
    read is one of the failed; raises where not even the namespaces are known.
    """
    staging = Staging(connection)
    await staging.create(keep=True)
    inventory = await source.inventory(scope)
    gathered = Gathered(failed=dict(inventory.failed))
    copying = asyncio.Lock()
    done = 0

    async def read(namespace: NamespaceName) -> None:
        nonlocal done
        try:
            contents = await source.contents(namespace)
            _check(contents)
        except BrokerCoreError as error:
            gathered.failed[str(namespace)] = str(error)
        else:
            async with copying:
                await staging.copy(_blocks(contents))
            gathered.names += len(contents)
            gathered.unread.update(contents.unread)
            gathered.namespaces.append(str(namespace))
        done += 1
        if progress is not None:
            progress(done, len(inventory.namespaces), gathered.names)

    await each_of(inventory.namespaces, read, parallel)
    if inventory.namespaces and not gathered.namespaces:
        raise FillingFailed(
            f"No namespace of the {source.name} can be read: {next(iter(gathered.failed.values()))}"
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
            gathered.namespaces.append(name)
    gathered.namespaces.sort()
    await staging.analyze()
    return gathered


def _check(contents: Contents) -> None:
    for part in contents.parts:
        name = too_long(contents.namespace, part.names)
        if name is not None:
            raise FillingFailed(
                f"The name of the {part.domain} topic {name[:100]!r}... has more bytes than the database can hold, "
                f"{longest_name(contents.namespace)}"
            )


async def _blocks(contents: Contents) -> AsyncIterator[bytes]:
    for part in contents.parts:
        for start in range(0, len(part.names), _ROWS_A_BLOCK):
            rows = slice(start, start + _ROWS_A_BLOCK)
            yield copy_lines(
                str(contents.namespace),
                part.domain,
                part.names[rows],
                part.topics[rows],
                part.properties[rows],
            )


def _parsed(name: str) -> NamespaceName | None:
    """A namespace of the database; what is none there can be none of a cluster's."""
    try:
        return NamespaceName.parse(name)
    except InvalidName:
        return None
