"""Comparing a namespace with the staging table, and merging the differences into it: sets, in one transaction.

Writers come one after the other, by locking the row of the namespace's version; writers by plain SQL that skip this are
waited for row by row. Readers are not locked: they see the state before or after. Topics are added before others are
removed, so that a topic keeps its id when all its listed names change, as when it gets partitions. A topic that has
another id in the source (:mod:`.staged_ids`) is another topic: its names are deleted first, and created anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import asyncpg

from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.trigram_part import begin_part, end_part

__all__ = ["MergeCounts", "compare", "merge", "namespaces_of_database", "version_of"]

_TRIES: Final = 3
#: The longest wait for another writer, more than the largest load takes.
_LOCK_TIMEOUT: Final = "120s"

# Waits for other writers, marks the namespace as filled, and returns the version that the changes will have.
_BEGIN: Final = "SELECT broker_core.begin_change($1)"
_TOPICS: Final = "SELECT topics FROM broker_core.namespaces WHERE namespace = $1"
_VERSION: Final = "SELECT version FROM broker_core.namespaces WHERE namespace = $1"
_COMPARE: Final = """SELECT
        count(*) FILTER (WHERE t.local_name IS NULL),
        count(*) FILTER (WHERE s.properties <> t.properties{differ}),
        count(*) FILTER (WHERE s.local_name IS NULL),
        count(t.local_name)
    FROM (SELECT s.domain, s.local_name, s.properties{given} FROM pg_temp.broker_core_staged s {join}
        WHERE s.namespace = $1) s
    FULL JOIN (SELECT domain, local_name, properties{own} FROM broker_core.topics WHERE namespace = $1) t
        USING (domain, local_name)"""
# Rows are inserted with versions and ids, so that no trigger has to find them row by row (migration 2). Ids are the
# source's, else random; with partitions they are derived, so that all names of a topic have one.
_DRAWN: Final = "broker_core.new_topic_id()"
_DERIVED: Final = (
    "broker_core.shared_topic_id(broker_core.salt_of($1, $2), s.domain, coalesce(s.topic, s.local_name))"
)
_PARTITIONED: Final = (
    "SELECT EXISTS (SELECT FROM pg_temp.broker_core_staged WHERE namespace = $1 AND topic IS NOT NULL)"
)
# With ids of the source. A CASE draws only if there is none.
_GIVEN: Final = "CASE WHEN i.topic_id IS NULL THEN {made} ELSE i.topic_id END"
_JOIN_IDS: Final = """LEFT JOIN pg_temp.broker_core_staged_ids i
        ON i.namespace = $1 AND i.domain = s.domain AND i.topic = coalesce(s.topic, s.local_name)"""
_HAS_IDS: Final = "SELECT EXISTS (SELECT FROM pg_temp.broker_core_staged_ids WHERE namespace = $1)"
_CREATED_ANEW: Final = """SELECT count(*), count(*) FILTER (WHERE s.properties <> t.properties{differ})
    FROM broker_core.topics t
    JOIN pg_temp.broker_core_staged_ids i
        ON i.namespace = $1 AND i.domain = t.domain AND i.topic = t.matched AND i.topic_id <> t.topic_id
    JOIN (SELECT s.domain, s.local_name, s.properties{given} FROM pg_temp.broker_core_staged s {join}
        WHERE s.namespace = $1) s ON s.domain = t.domain AND s.local_name = t.local_name
    WHERE t.namespace = $1"""
# All names of such a topic, also the ones that the new topic lacks: a name that stayed would keep the old id.
_DELETE_FORMER: Final = """DELETE FROM broker_core.topics t USING pg_temp.broker_core_staged_ids i
    WHERE t.namespace = $1 AND i.namespace = $1 AND i.domain = t.domain AND i.topic = t.matched
        AND i.topic_id <> t.topic_id"""
_STAGED: Final = "SELECT count(*) FROM pg_temp.broker_core_staged WHERE namespace = $1"
_INTO: Final = """INSERT INTO broker_core.topics
    (namespace, domain, local_name, properties, topic_id, created_version, changed_version, trigram_part{own})"""
_INSERT_FIRST: Final = """{into}
    SELECT s.namespace, s.domain, s.local_name, coalesce(s.properties, '{{}}'), {id}, $2, $2, {part:d}{new}
    FROM pg_temp.broker_core_staged s {ids} {join} WHERE s.namespace = $1 ORDER BY s.domain, s.local_name"""
# A new partition gets the properties of its topic unless others are given.
_INSERT: Final = """WITH new AS MATERIALIZED (
        SELECT * FROM pg_temp.broker_core_staged s
        WHERE s.namespace = $1 AND NOT EXISTS (
            SELECT FROM broker_core.topics t
            WHERE t.namespace = $1 AND t.domain = s.domain AND t.local_name = s.local_name)
    ), kept AS MATERIALIZED (
        SELECT DISTINCT ON (t.domain, t.matched) t.domain, t.matched, t.properties FROM broker_core.topics t
        WHERE t.namespace = $1 AND t.properties <> '{{}}' AND (t.domain, t.matched) IN (
            SELECT domain, coalesce(topic, local_name) FROM new WHERE properties IS NULL)
        ORDER BY t.domain, t.matched, t.partition NULLS FIRST
    ) {into}
    SELECT s.namespace, s.domain, s.local_name, coalesce(s.properties, kept.properties, '{{}}'), {id}, $2, $2,
        {part:d}{new}
    FROM new s {ids} {join} LEFT JOIN kept
        ON s.properties IS NULL AND kept.domain = s.domain AND kept.matched = coalesce(s.topic, s.local_name)
    ORDER BY s.domain, s.local_name"""
_UPDATE: Final = """UPDATE broker_core.topics t SET properties = coalesce(s.properties, t.properties){put}
    FROM (SELECT s.domain, s.local_name, s.properties{given} FROM pg_temp.broker_core_staged s {join}
        WHERE s.namespace = $1) s
    WHERE t.namespace = $1 AND t.domain = s.domain AND t.local_name = s.local_name
        AND (s.properties <> t.properties{differ})"""
# The same for all partitions of the topics, also unstaged ones.
_GIVEN_TO_TOPICS: Final = """(
        SELECT domain, topic, s.properties{given} FROM (
            SELECT DISTINCT domain, coalesce(topic, local_name) AS topic, properties
            FROM pg_temp.broker_core_staged WHERE namespace = $1 AND properties IS NOT NULL
        ) s {all}
    ) s
    WHERE t.namespace = $1 AND t.domain = s.domain AND t.matched = s.topic AND (s.properties <> t.properties{differ})"""
_UPDATE_TOPICS: Final = (
    "UPDATE broker_core.topics t SET properties = coalesce(s.properties, t.properties){put} FROM "  # noqa: S608
    + _GIVEN_TO_TOPICS
)
_COMPARE_TOPICS: Final = "SELECT count(*) FROM broker_core.topics t, " + _GIVEN_TO_TOPICS  # noqa: S608
_DELETE: Final = """DELETE FROM broker_core.topics t
    WHERE t.namespace = $1 AND NOT EXISTS (
        SELECT FROM pg_temp.broker_core_staged s
        WHERE s.namespace = $1 AND s.domain = t.domain AND s.local_name = t.local_name)"""
# Parts of the statements above if the source gives configs (staged_configs); else empty.
_CONFIGS: Final = {
    "given": ", c.configs, c.replication",
    "join": """LEFT JOIN pg_temp.broker_core_staged_configs c
        ON c.namespace = $1 AND c.domain = s.domain AND c.topic = coalesce(s.topic, s.local_name)""",
    "all": """FULL JOIN (SELECT domain, topic, configs, replication FROM pg_temp.broker_core_staged_configs
        WHERE namespace = $1) c USING (domain, topic)""",
    "own": ", configs, replication",
    "new": ", nullif(c.configs, '{}'), c.replication",
    "differ": """ OR (t.local_name IS NOT NULL AND (
            (s.configs IS NOT NULL AND t.configs IS DISTINCT FROM nullif(s.configs, '{}'))
            OR (s.replication IS NOT NULL AND t.replication IS DISTINCT FROM s.replication)))""",
    "put": """, replication = coalesce(s.replication, t.replication),
        configs = CASE WHEN s.configs IS NULL THEN t.configs ELSE nullif(s.configs, '{}') END""",
}
_NO_CONFIGS: Final = dict.fromkeys(_CONFIGS, "")
# The source gives the configs of all topics: a topic has no others.
_ALL_CONFIGS: Final = _CONFIGS | {
    "differ": """ OR (t.local_name IS NOT NULL AND s.local_name IS NOT NULL AND (
            t.configs IS DISTINCT FROM s.configs OR t.replication IS DISTINCT FROM s.replication))""",
    "put": ", configs = s.configs, replication = s.replication",
}
_HAS_CONFIGS: Final = "SELECT EXISTS (SELECT FROM pg_temp.broker_core_staged_configs WHERE namespace = $1)"


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """Differences in listed names: ``added``, ``removed``, and ``changed`` ones with other properties or configs.

    ``there`` is the number that the database lists before. ``created_anew`` are names of both sides whose topic has
    another id in the source: nothing of the former topic stays. ``version`` is the namespace's after a merge.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    there: int = 0
    created_anew: int = 0
    version: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __add__(self, other: MergeCounts) -> MergeCounts:
        """The differences of several namespaces, which have no version together."""
        return MergeCounts(
            self.added + other.added,
            self.changed + other.changed,
            self.removed + other.removed,
            self.there + other.there,
            self.created_anew + other.created_anew,
        )

    @property
    def rows(self) -> int:
        """The rows that are written, or would be."""
        return self.added + self.changed + self.removed + self.created_anew

    @property
    def loss(self) -> tuple[int, int]:
        """The names in the database, and how many of them would go, for the guard against mass deletions."""
        return self.there, self.removed


async def namespaces_of_database(connection: Any) -> dict[str, int]:
    """All namespaces that were ever filled, with their versions."""
    rows = await connection.fetch("SELECT namespace, version FROM broker_core.namespaces")
    return {row["namespace"]: row["version"] for row in rows}


async def version_of(connection: Any, namespace: str) -> int | None:
    """The version of a namespace; ``None`` if it was never filled."""
    version: int | None = await connection.fetchval(_VERSION, namespace)
    return version


async def compare(
    connection: Any, namespace: str, *, remove: bool = True, all_configs: bool = False
) -> MergeCounts:
    """The changes that :func:`merge` with the same arguments would make now."""
    configs = _ALL_CONFIGS if all_configs else await _configs(connection, namespace)
    counts = MergeCounts(*await connection.fetchrow(_COMPARE.format(**configs), namespace))
    if await connection.fetchval(_HAS_IDS, namespace):
        anew, changed = await connection.fetchrow(_CREATED_ANEW.format(**configs), namespace)
        counts = replace(counts, created_anew=anew, changed=counts.changed - changed)
    if remove:
        return counts
    return replace(
        counts, removed=0, changed=await connection.fetchval(_COMPARE_TOPICS.format(**configs), namespace)
    )


async def _configs(connection: Any, namespace: str) -> dict[str, str]:
    """The parts of the statements about configs."""
    return _CONFIGS if await connection.fetchval(_HAS_CONFIGS, namespace) else _NO_CONFIGS


async def merge(
    connection: Any,
    namespace: str,
    *,
    remove: bool = True,
    resolve_conflicts: Callable[[], Awaitable[None]] | None = None,
    check: Callable[[MergeCounts], None] | None = None,
    parts: bool = False,
    all_configs: bool = False,
) -> MergeCounts:
    """Merge the staging table into a namespace, within the caller's transaction.

    With ``remove`` the namespace becomes equal to it. Without, properties of one name of a topic go to all its names.
    ``resolve_conflicts`` is called when no other writer can change the namespace any more, and may change the staging
    table. ``check`` is then called with the differences. If one of them raises, nothing is written. ``parts``: many
    names get a part of their own in the index of trigrams (:mod:`.trigram_part`); all other writers wait for that.
    ``all_configs``, with ``remove`` only: topics without staged configs have none.

    A namespace without topics is marked as filled: its listings are empty instead of passing through. Without
    differences the version stays. Raises :exc:`FillingFailed` if another writer does not end.
    """
    for number in range(_TRIES, 0, -1):
        try:
            async with connection.transaction():
                return await _merge(
                    connection,
                    namespace,
                    remove=remove,
                    resolve_conflicts=resolve_conflicts,
                    check=check,
                    parts=parts,
                    all_configs=all_configs,
                )
        except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.UniqueViolationError):
            # A writer by plain SQL changes the same topics without locking the version first: retry after it.
            if number == 1:
                raise
        except asyncpg.LockNotAvailableError:
            raise FillingFailed(
                f"Somebody else has been writing {namespace}, or loading an empty database, for {_LOCK_TIMEOUT}: "
                "nothing was changed, try again later"
            ) from None
    raise AssertionError("the last try returns or raises")


async def _merge(
    connection: Any,
    namespace: str,
    *,
    remove: bool,
    resolve_conflicts: Callable[[], Awaitable[None]] | None,
    check: Callable[[MergeCounts], None] | None,
    parts: bool,
    all_configs: bool,
) -> MergeCounts:
    await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
    proposed = await connection.fetchval(_BEGIN, namespace)
    if resolve_conflicts is not None:
        await resolve_conflicts()
    first = not await connection.fetchval(_TOPICS, namespace)
    made, ids = _DERIVED if await connection.fetchval(_PARTITIONED, namespace) else _DRAWN, ""
    if await connection.fetchval(_HAS_IDS, namespace):
        made, ids = _GIVEN.format(made=made), _JOIN_IDS
    configs = _ALL_CONFIGS if all_configs else await _configs(connection, namespace)
    into = _INTO.format(**configs)
    if first:
        part = await begin_part(connection, await connection.fetchval(_STAGED, namespace)) if parts else 0
        insert = _INSERT_FIRST.format(into=into, id=made, ids=ids, part=part, **configs)
        added = _count(await connection.execute(insert, namespace, proposed))
        await end_part(connection, part)
        return MergeCounts(added, version=await connection.fetchval(_VERSION, namespace))
    # Each statement below compares both sides in full. This comparison shows which of them are needed.
    expected = await compare(connection, namespace, remove=remove, all_configs=all_configs)
    if check is not None:
        check(expected)
    added = changed = removed = 0
    anew = expected.created_anew
    if ids and (expected.added or anew):
        removed = _count(await connection.execute(_DELETE_FORMER, namespace)) - anew
    if expected.added or anew:
        part = await begin_part(connection, expected.added + anew) if parts else 0
        insert = _INSERT.format(into=into, id=made, ids=ids, part=part, **configs)
        added = _count(await connection.execute(insert, namespace, proposed)) - anew
        await end_part(connection, part)
    if expected.changed or (added and not remove):
        update = (_UPDATE if remove else _UPDATE_TOPICS).format(**configs)
        changed = _count(await connection.execute(update, namespace))
    if expected.removed:
        removed += _count(await connection.execute(_DELETE, namespace))
    version = await connection.fetchval(_VERSION, namespace)
    return MergeCounts(added, changed, removed, expected.there, anew, version)


def _count(status: str) -> int:
    """The number of rows of a command tag: ``INSERT 0 12``, ``DELETE 3``."""
    return int(status.rpartition(" ")[2])
