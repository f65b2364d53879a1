"""Setting properties: of a topic with all its partitions, or of all topics of a namespace that match a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from broker_core import EncodedNames
from broker_core.catalog import PropertiesChange
from broker_core.names import DOMAINS, NamespaceName, TopicName
from broker_core.patterns import selecting_pattern
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.one_transaction import one_transaction
from broker_core_postgres.fill.storage_limits import storable_properties

__all__ = ["TopicPropertiesReport", "set_properties", "set_properties_of_matching", "storable_change"]

# `jsonb - text[]` removes keys.
_UPDATE: Final = """UPDATE broker_core.topics SET properties =
        (CASE WHEN $4 THEN '{}'::jsonb ELSE properties - $5::text[] END) || $6::jsonb
    WHERE namespace = $1 AND domain = $2 AND matched = ANY($3::text[])
        AND properties <> (CASE WHEN $4 THEN '{}'::jsonb ELSE properties - $5::text[] END) || $6::jsonb"""
_COUNT: Final = """SELECT count(*) FROM broker_core.topics
    WHERE namespace = $1 AND domain = $2 AND matched = ANY($3::text[])"""
#: One listed name of each topic.
_LISTED: Final = """SELECT min(local_name) FROM broker_core.topics
    WHERE namespace = $1 AND domain = $2 GROUP BY matched"""


@dataclass(frozen=True, slots=True)
class TopicPropertiesReport:
    """The number of ``topics``, of their listed ``names``, and of names that ``changed``."""

    topics: int
    names: int
    changed: int


def storable_change(change: PropertiesChange) -> str:
    """The JSON text of what a change sets.

    Raises :exc:`~broker_core.catalog.CatalogError` for a change that is not possible, and :exc:`FillingFailed` for one
    that PostgreSQL cannot hold.
    """
    change.check()
    if any("\0" in key for key in change.unset):
        raise FillingFailed("PostgreSQL holds no key with a NUL character")
    return storable_properties(change.given)


async def set_properties(
    connection: Any, topic: TopicName, change: PropertiesChange, *, dry_run: bool = False
) -> TopicPropertiesReport:
    """Change the properties of a topic, named by its own name or by a partition, for all of its names.

    Without a difference the version stays. Raises :exc:`FillingFailed` for an unknown topic, and for properties that
    PostgreSQL cannot hold.
    """
    own = {topic.domain: [topic.partitioned_name.local]}
    report = await _change(connection, topic.namespace, own, change, dry_run=dry_run)
    if not report.names:
        raise FillingFailed(f"There is no topic {topic} in the database")
    return report


async def set_properties_of_matching(
    connection: Any,
    namespace: NamespaceName,
    pattern: str,
    change: PropertiesChange,
    *,
    dry_run: bool = False,
) -> TopicPropertiesReport:
    """Change the properties of all topics of a namespace that a listing by this pattern would give.

    Persistent and non-persistent topics change in one transaction. Raises :exc:`~broker_core.errors.InvalidPattern`,
    also for a pattern that can match none of them.
    """
    compiled = selecting_pattern(pattern, namespace)
    matching: dict[str, list[str]] = {}
    for domain in DOMAINS:
        rows = await connection.fetch(_LISTED, str(namespace), domain)
        names = EncodedNames.of(namespace, domain, [name for (name,) in rows])
        picked = names.matching(compiled)
        chosen = names.slice(*picked).names if isinstance(picked, tuple) else names.names.take(picked)
        matching[domain] = [TopicName.split_local(name)[0] for name in chosen.to_pylist()]
    return await _change(connection, namespace, matching, change, dry_run=dry_run)


async def _change(
    connection: Any,
    namespace: NamespaceName,
    topics: Mapping[str, list[str]],
    change: PropertiesChange,
    *,
    dry_run: bool,
) -> TopicPropertiesReport:
    given = storable_change(change)
    names = changed = 0
    async with one_transaction(connection, dry_run=dry_run):
        for domain, own in topics.items():
            if not own:
                continue
            names += await connection.fetchval(_COUNT, str(namespace), domain, own)
            status = await connection.execute(
                _UPDATE, str(namespace), domain, own, change.replace, list(change.unset), given
            )
            changed += int(status.rpartition(" ")[2])
    return TopicPropertiesReport(sum(map(len, topics.values())), names, changed)
