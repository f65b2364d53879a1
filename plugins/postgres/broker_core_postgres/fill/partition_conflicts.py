"""Conflicts between a topic and its partitions in a file: the rules of an import into the embedded catalogue, as SQL.

Properties given alone are for the topic with its partitions, in the file or the database. A topic ``x`` beside a
partition ``x-partition-0`` with other properties is refused: no broker has such a pair, and selections by property
would miss one of the two. Mirrors do not apply these rules: rows have properties of their own, so that a mirror can
show such a pair if a cluster has one.
"""

from __future__ import annotations

from typing import Any, Final

from broker_core.catalog import PairRefused
from broker_core.change_log import ListedNames

__all__ = ["resolve_conflicts"]

_PARTITIONS: Final = """SELECT FROM broker_core.topics known
    WHERE known.namespace = $1 AND known.domain = {0}.domain AND known.matched = {0}.{1}
        AND known.partition IS NOT NULL"""

# The few topics for which the file has the plain name and partitions. Each of the two has one text of properties by
# now. `alone`: the line of the plain name only gives the topic's properties.
_BOTH: Final = """CREATE TEMPORARY TABLE broker_core_both ON COMMIT DROP AS
    SELECT p.domain, p.topic, own.stated, own.properties, bool_or(p.stated) AS alone,
        max(p.properties::text)::jsonb AS of_partitions, min(broker_core.partition_of(p.local_name)) AS partition
    FROM pg_temp.broker_core_staged p
    JOIN pg_temp.broker_core_staged own
        ON own.topic IS NULL AND own.domain = p.domain AND own.local_name = p.topic
    WHERE p.topic IS NOT NULL
    GROUP BY p.domain, p.topic, own.stated, own.properties"""
_ALONE: Final = f"""UPDATE pg_temp.broker_core_both b
    SET alone = NOT stated AND (alone OR ($2 AND EXISTS ({_PARTITIONS.format("b", "topic")})))"""  # noqa: S608 - constants
_REFUSED_IN_FILE: Final = """SELECT topic, partition FROM pg_temp.broker_core_both
    WHERE NOT alone AND coalesce(properties, '{}') <> coalesce(of_partitions, '{}') LIMIT 1"""
_SHARED: Final = """UPDATE pg_temp.broker_core_staged s SET properties = coalesce(b.properties, b.of_partitions)
    FROM pg_temp.broker_core_both b
    WHERE s.domain = b.domain AND coalesce(s.topic, s.local_name) = b.topic
        AND s.properties IS DISTINCT FROM coalesce(b.properties, b.of_partitions)"""
_DROP_ALONE: Final = """DELETE FROM pg_temp.broker_core_staged s USING pg_temp.broker_core_both b
    WHERE b.alone AND s.topic IS NULL AND s.domain = b.domain AND s.local_name = b.topic"""

# Properties alone, for topics with partitions in the database: they go to all names that it lists.
_PROPERTIES_ALONE: Final = f"""WITH alone AS (
        DELETE FROM pg_temp.broker_core_staged s
        WHERE s.topic IS NULL AND NOT s.stated AND EXISTS ({_PARTITIONS.format("s", "local_name")})
        RETURNING s.domain, s.local_name, s.properties
    )
    INSERT INTO pg_temp.broker_core_staged (namespace, domain, topic, local_name, properties, part, stated)
    SELECT t.namespace, t.domain, CASE WHEN t.partition IS NULL THEN NULL ELSE t.matched END, t.local_name,
        alone.properties, 0, true
    FROM alone JOIN broker_core.topics t
        ON t.namespace = $1 AND t.domain = alone.domain AND t.matched = alone.local_name"""  # noqa: S608 - constants

# The file lists the plain name and the database a partition, or the reverse, with different properties. If the database
# has both already, names without properties in the file take theirs.
_REFUSED: Final = f"""SELECT s.topic, broker_core.partition_of(s.local_name)
    FROM pg_temp.broker_core_staged s JOIN broker_core.topics t
        ON t.namespace = $1 AND t.domain = s.domain AND t.local_name = s.topic AND t.partition IS NULL
    WHERE s.topic IS NOT NULL AND t.properties <> coalesce(s.properties, '{{}}')
        AND (s.properties IS NOT NULL OR NOT EXISTS ({_PARTITIONS.format("s", "topic")}))
        AND NOT EXISTS (SELECT FROM pg_temp.broker_core_staged o
            WHERE o.topic IS NULL AND o.domain = s.domain AND o.local_name = s.topic)
    UNION ALL SELECT t.matched, t.partition
    FROM pg_temp.broker_core_staged s JOIN broker_core.topics t
        ON t.namespace = $1 AND t.domain = s.domain AND t.matched = s.local_name AND t.partition IS NOT NULL
    WHERE s.topic IS NULL AND t.properties <> coalesce(s.properties, '{{}}')
        AND (s.properties IS NOT NULL OR NOT EXISTS (SELECT FROM broker_core.topics plain
            WHERE plain.namespace = $1 AND plain.domain = s.domain AND plain.local_name = s.local_name))
        AND NOT EXISTS (SELECT FROM pg_temp.broker_core_staged o WHERE o.domain = s.domain AND o.topic = s.local_name)
    ORDER BY 1, 2 LIMIT 1"""  # noqa: S608 - constants


async def resolve_conflicts(connection: Any, namespace: str, *, add: bool, both: bool, alone: bool) -> None:
    """Resolve conflicts in the staged rows of a file, in the transaction of a load, for one namespace.

    ``both``: the file may have lines about a topic and about its partitions; each kind is staged once for a topic.
    ``alone``: the file may have lines with properties alone. ``add``: the topics of the database stay, so that the file
    is compared with them too. No other writer may change the namespace until the end of the transaction.

    Raises :exc:`~broker_core.catalog.PairRefused`.
    """
    if both:
        await connection.execute(_BOTH)
        await connection.execute(_ALONE, namespace, add)
        await _refuse(connection, _REFUSED_IN_FILE)
        await connection.execute(_SHARED)
        await connection.execute(_DROP_ALONE)
        await connection.execute("DROP TABLE pg_temp.broker_core_both")
    if add and alone:
        await connection.execute(_PROPERTIES_ALONE, namespace)
    if add:
        await _refuse(connection, _REFUSED, namespace)


async def _refuse(connection: Any, question: str, *arguments: str) -> None:
    row = await connection.fetchrow(question, *arguments)
    if row is not None:
        raise PairRefused.of(row[0], ListedNames.of(row[1]))
