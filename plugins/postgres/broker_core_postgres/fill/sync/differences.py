"""The differences between the staging table and the database, topic by topic."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from broker_core.catalog import topic_id_text
from broker_core.plugin_cli import printable
from broker_core.quantities import counted

__all__ = [
    "Difference",
    "KafkaFacts",
    "OtherProperties",
    "Sides",
    "as_json",
    "as_line",
    "differences",
]

T = TypeVar("T")

_SHOWN_NAMES: Final = 10

_DIFFERENCES: Final = """WITH
    staged AS NOT MATERIALIZED (
        SELECT s.domain, coalesce(s.topic, s.local_name) AS topic, s.local_name, s.properties, i.topic_id,
            c.configs, c.replication
        FROM pg_temp.broker_core_staged s LEFT JOIN pg_temp.broker_core_staged_ids i
            ON i.namespace = $1 AND i.domain = s.domain AND i.topic = coalesce(s.topic, s.local_name)
        LEFT JOIN pg_temp.broker_core_staged_configs c
            ON c.namespace = $1 AND c.domain = s.domain AND c.topic = coalesce(s.topic, s.local_name)
        WHERE s.namespace = $1),
    there AS NOT MATERIALIZED (
        SELECT domain, matched AS topic, local_name, properties, topic_id, configs, replication
        FROM broker_core.topics WHERE namespace = $1),
    differing AS MATERIALIZED (
        SELECT domain, coalesce(s.topic, t.topic) AS topic, local_name,
            t.local_name IS NULL AS missing, s.local_name IS NULL AS extra,
            t.properties::text AS of_database, s.properties::text AS of_source,
            t.topic_id AS id_of_database, s.topic_id AS id_of_source,
            $2 AND t.name IS NOT NULL AND s.name IS NOT NULL AND (
                t.configs IS DISTINCT FROM s.configs OR t.replication IS DISTINCT FROM s.replication) AS other_configs,
            t.configs::text AS configs_of_database, s.configs::text AS configs_of_source,
            t.replication AS replication_of_database, s.replication AS replication_of_source
        FROM (SELECT *, local_name AS name FROM staged) s
        FULL JOIN (SELECT *, local_name AS name FROM there) t USING (domain, local_name)
        WHERE t.name IS NULL OR s.name IS NULL OR s.properties <> t.properties OR s.topic_id <> t.topic_id
            OR ($2 AND (t.configs IS DISTINCT FROM s.configs OR t.replication IS DISTINCT FROM s.replication)))
    SELECT d.*, wanted.topic IS NOT NULL AND known.topic IS NOT NULL AS in_both
    FROM differing d
    LEFT JOIN (SELECT DISTINCT domain, topic FROM staged) wanted USING (domain, topic)
    LEFT JOIN (SELECT DISTINCT domain, topic FROM there) known USING (domain, topic)
    ORDER BY d.domain DESC, d.topic, d.local_name"""


@dataclass(frozen=True, slots=True)
class OtherProperties:
    """Listed names whose properties differ between the database and the source."""

    names: tuple[str, ...]
    database: Mapping[str, str]
    source: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KafkaFacts:
    """Kafka's configs of a topic, and the number of replicas that clients wanted."""

    configs: Mapping[str, str]
    replication: int | None


@dataclass(frozen=True, slots=True)
class Sides(Generic[T]):
    """A value that differs: in the database and in the source."""

    database: T
    source: T


@dataclass(frozen=True, slots=True)
class Difference:
    """A topic that differs, by its full name without partition suffix.

    ``missing``: the database lists none of its names. ``extra``: the source lists none. ``different``: both list some,
    but names (its partitions), properties, the id or configs differ. ``missing`` and ``extra`` have full names as
    listed.
    """

    kind: Literal["missing", "extra", "different"]
    topic: str
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    properties: tuple[OtherProperties, ...] = ()
    #: The ids of a recreated topic as texts of base64: the database has that of the former topic.
    topic_id: Sides[str] | None = None
    configs: Sides[KafkaFacts] | None = None


async def differences(connection: Any, namespace: str, *, configs: bool = False) -> AsyncIterator[Difference]:
    """The topics of a namespace that differ: persistent ones first, by name. Needs a transaction of the caller's.

    With ``configs``, the configs and the numbers of replicas are compared too.
    """
    rows: list[Any] = []
    async for row in connection.cursor(_DIFFERENCES, namespace, configs, prefetch=5_000):
        if rows and (row["domain"], row["topic"]) != (rows[0]["domain"], rows[0]["topic"]):
            yield _difference(namespace, rows)
            rows = []
        rows.append(row)
    if rows:
        yield _difference(namespace, rows)


def _difference(namespace: str, rows: list[Any]) -> Difference:
    prefix = f"{rows[0]['domain']}://{namespace}/"
    missing = tuple(prefix + row["local_name"] for row in rows if row["missing"])
    extra = tuple(prefix + row["local_name"] for row in rows if row["extra"])
    topic_id: Sides[str] | None = None
    configs: Sides[KafkaFacts] | None = None
    alike: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["missing"] or row["extra"]:
            continue
        before, now = row["id_of_database"], row["id_of_source"]
        if now is not None and now != before:
            topic_id = Sides(topic_id_text(before), topic_id_text(now))
        if row["other_configs"]:
            configs = Sides(_facts(row, "database"), _facts(row, "source"))
        if row["of_source"] is not None and row["of_database"] != row["of_source"]:
            alike.setdefault((row["of_database"], row["of_source"]), []).append(prefix + row["local_name"])
    properties = tuple(
        OtherProperties(tuple(names), json.loads(database), json.loads(source))
        for (database, source), names in alike.items()
    )
    kind: Literal["missing", "extra", "different"] = "different"
    if not rows[0]["in_both"]:
        kind = "missing" if missing else "extra"
    return Difference(kind, prefix + rows[0]["topic"], missing, extra, properties, topic_id, configs)


def _facts(row: Any, side: str) -> KafkaFacts:
    return KafkaFacts(json.loads(row[f"configs_of_{side}"] or "{}"), row[f"replication_of_{side}"])


def as_json(difference: Difference) -> dict[str, Any]:
    """A difference as JSON, in full."""
    return asdict(difference)


def as_line(difference: Difference, source: str) -> str:
    """A difference as one line of text. Names are foreign text, so control characters are escaped."""
    details: list[str] = []
    if difference.kind == "different":
        details += [f"missing {_names(difference.missing)}"] if difference.missing else []
        details += [f"extra {_names(difference.extra)}"] if difference.extra else []
    else:
        names = difference.missing or difference.extra
        details += [_names(names)] if names != (difference.topic,) else []
    details += [
        f"properties {_text(other.database)} in the database, {_text(other.source)} in the {source}"
        for other in difference.properties
    ]
    if difference.topic_id is not None:
        ids = difference.topic_id
        details.append(f"created anew, id {ids.database} in the database, {ids.source} in the {source}")
    if difference.configs is not None:
        ours, theirs = (
            _facts_text(each) for each in (difference.configs.database, difference.configs.source)
        )
        details.append(f"configs {ours} in the database, {theirs} in the {source}")
    line = f"{difference.kind:9} {difference.topic}" + (f": {'; '.join(details)}" if details else "")
    return printable(line)


def _names(names: Iterable[str]) -> str:
    names = tuple(names)
    rest = len(names) - _SHOWN_NAMES
    return ", ".join(names[:_SHOWN_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _facts_text(facts: KafkaFacts) -> str:
    return _text(facts.configs) + (
        "" if facts.replication is None else f" and {counted(facts.replication, 'replica')}"
    )


def _text(properties: Mapping[str, str]) -> str:
    return json.dumps(dict(properties), ensure_ascii=False, sort_keys=True)
