"""Replaying the change log: it must give the table, version by version."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["check_everything", "replayed"]

Key = tuple[str, str]

_NAMESPACES = "SELECT namespace, version, topics, log_floor, loaded FROM broker_core.namespace_versions"
_TABLE = """SELECT domain, local_name, topic_id, properties, created_version, changed_version
    FROM broker_core.topics WHERE namespace = $1"""
_LOG = """SELECT version, operation, domain, local_name, topic_id, properties_before, properties_after
    FROM broker_core.changes WHERE namespace = $1 ORDER BY version, seq"""
_TOMBSTONES = """SELECT domain, local_name, topic_id, created_version, deleted_version
    FROM broker_core.tombstones WHERE namespace = $1"""
_TORN = """SELECT namespace, domain, matched FROM broker_core.topics
    GROUP BY 1, 2, 3 HAVING count(DISTINCT topic_id) > 1"""


async def check_everything(connection: Any) -> dict[str, int]:
    """Compare log, tombstones, counts and table of each namespace, in one snapshot; returns the versions.

    The logs must be complete, from version 1 on.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        found: dict[str, int] = {}
        for namespace, version, topics, floor, loaded in await connection.fetch(_NAMESPACES):
            table = {
                (row[0], row[1]): (row[2], json.loads(row[3]), row[4], row[5])
                for row in await connection.fetch(_TABLE, namespace)
            }
            assert floor == 0, namespace
            assert loaded or not table, namespace
            assert topics == len(table), namespace
            state, gone, versions = replayed(await connection.fetch(_LOG, namespace))
            assert state == table, namespace
            assert sorted(versions) == list(range(1, version + 1)), (namespace, version)
            tombstones = {tuple(row) for row in await connection.fetch(_TOMBSTONES, namespace)}
            assert tombstones == gone, namespace
            found[namespace] = version
        assert await connection.fetch(_TORN) == []
        assert not await connection.fetchval("SELECT count(*) FROM broker_core.mending")
    return found


def replayed(
    log: list[Any],
) -> tuple[dict[Key, tuple[Any, dict[str, str], int, int]], set[tuple[Any, ...]], set[int]]:
    """The table, the tombstones and the versions that a log gives. Each entry must fit the state before it."""
    state: dict[Key, tuple[Any, dict[str, str], int, int]] = {}
    gone: set[tuple[Any, ...]] = set()
    for version, operation, domain, local_name, topic_id, before, after in log:
        key = (domain, local_name)
        if operation == "create":
            assert key not in state, (version, key)
            assert before is None
            state[key] = (topic_id, json.loads(after), version, version)
            continue
        known, properties, created, _ = state.pop(key)
        assert properties == json.loads(before), (version, key)
        if operation == "delete":
            assert (known, after) == (topic_id, None), (version, key)
            gone.add((domain, local_name, topic_id, created, version))
        else:
            state[key] = (topic_id, json.loads(after), created, version)
    return state, gone, {row[0] for row in log}
