from __future__ import annotations

from broker_core.servers.kafka.apis import HANDLERS


def test_every_row_has_an_answer() -> None:
    assert all(row.now is not None or row.later is not None for row in HANDLERS.values())
