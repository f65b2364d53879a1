"""Descriptions of topics: number of partitions, id, properties, and Kafka's configs.

One statement describes some hundred topics, by the index of matched names. A namespace that was never loaded is left to
the next plugin. In a loaded one, a topic without a row does not exist. Configs are from the file, or from the mirrored
catalogue; they are unknown for a topic for which neither gave any, and for an operator's own relation. So is the time
of creation.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from broker_core import DescribeRequest, Details
from broker_core.errors import ListingFailed
from broker_core_postgres.connect import ServerPools
from broker_core_postgres.listing.listing_sql import RowSource
from broker_core_postgres.listing.query_metrics import QueryMetrics
from broker_core_postgres.settings import PostgresSettings

__all__ = ["PostgresDescriber"]

#: Topics of one statement. Properties take up to 64 kB a topic, hence fewer with them.
_TOPICS: Final = 1000
_TOPICS_WITH_PROPERTIES: Final = 200
#: Approximate bytes of a described topic, without its name and properties.
_TOPIC_BYTES: Final = 300
#: The largest number of partitions in Pulsar's protocol (a signed 32-bit integer).
_MOST_PARTITIONS: Final = 2**31 - 1
#: Topics that are assembled on the event loop, in some hundred microseconds.
_QUICK: Final = 200

# Id and properties of a topic are its plain name's, or its first partition's.
_PARTITION: Final = """CASE WHEN t.local_name <> t.matched
    THEN substr(t.local_name, length(t.matched) + length('-partition-') + 1)::bigint END"""
_BY_NAME: Final = (
    """(t.domain, t.matched) IN (SELECT * FROM unnest($2::text[], $3::text[]) AS asked (domain, topic))"""
)
_BY_ID: Final = "{topic_id} = ANY($2::uuid[])"
_KNOWN: Final = "EXISTS (SELECT FROM broker_core.namespaces n WHERE n.namespace = $1)"
_KNOWN_OF_RELATION: Final = "EXISTS (SELECT FROM {relation} k WHERE k.namespace = $1)"
_DESCRIBE: Final = """SELECT d.* FROM (SELECT {known} AS known) k LEFT JOIN LATERAL (
        SELECT t.domain, t.matched, coalesce(max({partition}) + 1, 0) AS partitions{columns}
        FROM {relation} t WHERE k.known AND t.namespace = $1 AND {asked} GROUP BY t.domain, t.matched
    ) d ON true WHERE k.known"""
# A partition that came later may have none.
_CONFIGS: Final = (
    f", (array_agg(t.configs ORDER BY {_PARTITION} NULLS FIRST) FILTER (WHERE t.configs IS NOT NULL))[1]::text"
    " AS configs"
)
_FIRST: Final = ", (array_agg({value} ORDER BY {partition} NULLS FIRST))[1]{type} AS {column}"


class PostgresDescriber:
    """Describes topics of loaded namespaces, for the event loop."""

    def __init__(
        self,
        server_pools: ServerPools,
        source: RowSource,
        settings: PostgresSettings,
        metrics: QueryMetrics,
    ) -> None:
        self._only_with_properties = settings.only_with_properties
        self._server_pools = server_pools
        self._source = source
        self._metrics = metrics

    async def describe(self, request: DescribeRequest) -> Details | None:
        """The existing topics of the question; ``None`` for a namespace that was never loaded.

        With ``only_with_properties`` it is always ``None``, since these requests have no consumer properties.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        if self._only_with_properties:
            return None
        parameters: list[Any] = (request.names if request.ids is None else request.ids).to_pylist()  # type: ignore[union-attr]
        texts = not request.wants.isdisjoint(("properties", "configs"))
        size = _TOPICS_WITH_PROPERTIES if texts else _TOPICS
        found: list[Any] = []
        try:
            async with request.lease(min(len(parameters), size) * _TOPIC_BYTES) as lease:
                for start in range(0, max(len(parameters), 1), size):
                    rows = await self._read(request, parameters[start : start + size])
                    if rows is None:
                        return None
                    # Without a connection: a request that waits for memory must not hold one.
                    await lease.grow(sum(_size_of(row) for row in rows))
                    found += rows
                if len(found) <= _QUICK:
                    return self._details(request, found)
                return await asyncio.to_thread(self._details, request, found)
        except ListingFailed as failure:
            self._metrics.failure(failure.reason)
            raise

    async def _read(self, request: DescribeRequest, parameters: Sequence[Any]) -> list[Any] | None:
        arguments: tuple[Any, ...]
        if request.ids is not None:
            condition = _BY_ID.format(topic_id=self._source.topic_id)
            arguments = ([bytes(each).hex() for each in parameters],)
        else:
            condition, arguments = _BY_NAME, _split_names(str(request.namespace), parameters)
        text = self._statement(request, condition)
        namespace = str(request.namespace)
        rows: list[Any] = await self._server_pools.read(
            lambda connection: connection.fetch(text, namespace, *arguments),
            deadline=request.deadline,
            namespace=namespace,
        )
        if not rows:
            return None
        return [row for row in rows if row["matched"] is not None]

    def _statement(self, request: DescribeRequest, condition: str) -> str:
        columns = ""
        if "topic_id" in request.wants:
            columns += _FIRST.format(
                value=self._source.topic_id, column="topic_id", partition=_PARTITION, type=""
            )
        if "properties" in request.wants:
            columns += _FIRST.format(
                value="t.properties", column="properties", partition=_PARTITION, type="::text"
            )
        if "configs" in request.wants and self._source.versions:
            columns += _CONFIGS
        relation = self._source.relation
        known = _KNOWN if self._source.versions else _KNOWN_OF_RELATION.format(relation=relation)
        return _DESCRIBE.format(
            known=known, partition=_PARTITION, columns=columns, relation=relation, asked=condition
        )

    def _details(self, request: DescribeRequest, rows: Sequence[Any]) -> Details:
        wants = request.wants
        configs = "configs" in wants and self._source.versions
        most = max((row["partitions"] for row in rows), default=0)
        if "partitions" in wants and most > _MOST_PARTITIONS:
            raise ListingFailed(
                f"a topic of {request.namespace} has a partition of the index {most - 1}: clients can get "
                f"{_MOST_PARTITIONS} at most",
                reason="bad_topics",
            )
        return Details.of(
            [f"{row['domain']}://{request.namespace}/{row['matched']}" for row in rows],
            partitions=[row["partitions"] for row in rows] if "partitions" in wants else None,
            topic_id=([row["topic_id"].bytes for row in rows] if "topic_id" in wants else None),
            properties=(
                [json.loads(row["properties"] or "{}") for row in rows] if "properties" in wants else None
            ),
            configs=[json.loads(row["configs"] or "null") for row in rows] if configs else None,
        )


def _split_names(namespace: str, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Domains and local names of full names. Names of other namespaces are left out: they match no row."""
    domains, local = [], []
    for name in names:
        domain, _, rest = name.partition("://")
        own = rest.removeprefix(f"{namespace}/")
        if own != rest and "\0" not in own:
            domains.append(domain)
            local.append(own)
    return domains, local


def _size_of(row: Any) -> int:
    return (
        _TOPIC_BYTES
        + 4 * len(row["matched"])
        + 4 * (len(row.get("properties") or "") + len(row.get("configs") or ""))
    )
