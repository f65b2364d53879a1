"""Kafka's configs and replicas that a source gives: each topic once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.staged_configs import copy_configs, staged_configs


async def test_the_last_configs_and_the_last_replicas_of_a_topic_count(connection: Any) -> None:
    parts: list[dict[str, tuple[str | None, int | None]]] = [
        {"x": ('{"a":"\\\\\\n"}', 2), "y\\\t\n": (None, 3)},
        {"x": (None, 1)},
        {"x": ("{}", None)},
    ]

    async def blocks() -> AsyncIterator[bytes]:
        for number, part in enumerate(parts):
            yield copy_configs("a/b", "persistent", part, part=number)

    staged = staged_configs(connection)
    await staged.create(keep=True)
    await staged.copy(blocks())
    await staged.analyze()
    first = "SELECT configs ->> 'a' FROM pg_temp.broker_core_staged_configs WHERE topic = 'x' AND part = 0"
    assert await connection.fetchval(first) == "\\\n"
    await staged.keep_each_once()
    rows = await connection.fetch(
        "SELECT topic, configs::text, replication FROM pg_temp.broker_core_staged_configs ORDER BY topic"
    )
    assert list(map(tuple, rows)) == [("x", "{}", 1), ("y\\\t\n", None, 3)]
    await staged.drop()


def test_a_text_that_postgresql_cannot_hold_is_refused() -> None:
    with pytest.raises(FillingFailed, match="A config of 'x' has a NUL"):
        copy_configs("a/b", "persistent", {"x": ('{"a":"\\u0000"}', None)})
    assert copy_configs("a/b", "persistent", {"x": ('{"a":"\\\\u0000"}', None)})
