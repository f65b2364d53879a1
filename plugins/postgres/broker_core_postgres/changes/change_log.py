"""The database's change log, as the core's :class:`~broker_core.change_log.ChangeLog`.

The database logs each listed name. Names of one topic that changed together and alike are one
:class:`~broker_core.change_log.Change`. A :class:`~broker_core.change_log.Gap` stands for changes that the log lacks,
or that would take more memory than is allowed; its reader reads the whole namespace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from broker_core.change_log import CatalogVersion, Change, Changes, Gap, ListedNames, Operation
from broker_core.names import NamespaceName, TopicName
from broker_core_postgres.connect import ServerPools

__all__ = ["MOST_BYTES", "MOST_CHANGES", "PostgresChangeLog", "read_changes"]

#: Changed names, and bytes of their properties, that are read at most; more are a gap.
MOST_CHANGES: Final = 50_000
MOST_BYTES: Final = 32 * 1024 * 1024

_NOTHING: Final = ListedNames(plain=False)
_NONE: Final[Mapping[str, str]] = MappingProxyType({})

_CATALOG: Final = "SELECT c.id::text FROM broker_core.catalog c"
#: Forgotten namespaces have a version too, which their next load continues.
_STATE: Final = """SELECT c.id::text, coalesce(v.version, 0), coalesce(v.log_floor, 0),
        coalesce(broker_core.stamp_of(v.namespace, v.version), '')
    FROM broker_core.catalog c LEFT JOIN broker_core.namespace_versions v ON v.namespace = $1"""
_STAMP: Final = "SELECT broker_core.stamp_of($1, $2)"
_SIZE: Final = """SELECT count(*), coalesce(sum(
        coalesce(octet_length(properties_before::text), 0) + coalesce(octet_length(properties_after::text), 0)), 0)
    FROM (
        SELECT properties_before, properties_after FROM broker_core.changes
        WHERE namespace = $1 AND version > $2 AND version <= $3 LIMIT $4
    ) c"""
_CHANGES: Final = """SELECT version, operation, domain, local_name, topic_id, properties_before::text,
        properties_after::text, changed
    FROM broker_core.changes
    WHERE namespace = $1 AND version > $2 AND version <= $3 ORDER BY version, seq"""


class PostgresChangeLog:
    """The change log of one database."""

    def __init__(
        self, server_pools: ServerPools, *, most_changes: int = MOST_CHANGES, most_bytes: int = MOST_BYTES
    ) -> None:
        self._server_pools = server_pools
        self._most_changes = most_changes
        self._most_bytes = most_bytes

    @property
    def name(self) -> str:
        """The name of the plugin."""
        return "postgres"

    async def catalog_id(self) -> str:
        """The id of the catalogue: versions are comparable under the same id."""
        return str(await self._server_pools.read(lambda connection: connection.fetchval(_CATALOG)))

    def version_now(self, namespace: NamespaceName) -> CatalogVersion | None:  # noqa: ARG002 - the protocol's
        """Always ``None``: the version is in the database, and reading it takes a round trip."""
        return None

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The version of a namespace; number 0 for one that was never loaded."""
        row = await self._server_pools.read(lambda connection: connection.fetchrow(_STATE, str(namespace)))
        return CatalogVersion(row[0], row[1], row[3])

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        """The changes after ``since``, from one snapshot."""
        return await self._server_pools.read(
            lambda connection: read_changes(
                connection, namespace, since, most_changes=self._most_changes, most_bytes=self._most_bytes
            ),
            snapshot=True,
        )


async def read_changes(
    connection: Any,
    namespace: NamespaceName,
    since: CatalogVersion,
    *,
    most_changes: int = MOST_CHANGES,
    most_bytes: int = MOST_BYTES,
) -> Changes | Gap:
    """The changes after ``since``. ``connection`` is in a transaction with one snapshot."""
    catalog_id, version, floor, stamp = await connection.fetchrow(_STATE, str(namespace))
    now = CatalogVersion(catalog_id, version, stamp)
    if since.catalog_id != catalog_id:
        return Gap(since, now, "the version is of another catalogue")
    if since.number > version:
        return Gap(since, now, "the database is older than the version: a backup was restored")
    if since.number < floor:
        return Gap(since, now, f"the log reaches back to version {floor} only")
    if since.stamp and since.number:
        known = (
            stamp
            if since.number == version
            else await connection.fetchval(_STAMP, str(namespace), since.number)
        )
        if known != since.stamp:
            return Gap(
                since, now, f"version {since.number} came again with other topics: a backup was restored"
            )
    span = (str(namespace), since.number, version)
    count, size = await connection.fetchrow(_SIZE, *span, most_changes + 1)
    if count > most_changes or size > most_bytes:
        return Gap(since, now, f"more than {most_changes} changes, or {most_bytes} bytes of properties")
    rows = await connection.fetch(_CHANGES, *span)
    return Changes(since, now, tuple(_changes(namespace, rows)))


def _changes(namespace: NamespaceName, rows: list[Any]) -> Iterator[Change]:
    """Group consecutive names of a topic that changed alike; keeps the order."""

    def alike(row: Any) -> tuple[Any, ...]:
        base, _ = TopicName.split_local(row["local_name"])
        return (row["version"], row["operation"], row["domain"], base, row["topic_id"], row[5], row[6])

    for (version, operation, domain, base, topic_id, before, after), group in groupby(rows, alike):
        changed = list(group)
        indices = [TopicName.split_local(row["local_name"])[1] for row in changed]
        listed = ListedNames(plain=-1 in indices) | ListedNames.of_indices(
            index for index in indices if index >= 0
        )
        yield Change(
            version=version,
            operation=Operation(operation),
            name=TopicName(domain, namespace, base),
            topic_id=topic_id,
            listed_before=_NOTHING if operation == "create" else listed,
            listed_after=_NOTHING if operation == "delete" else listed,
            properties_before=_properties(before),
            properties_after=_properties(after),
            time=changed[0]["changed"],
        )


def _properties(text: str | None) -> Mapping[str, str]:
    return _NONE if text is None or text == "{}" else MappingProxyType(json.loads(text))
