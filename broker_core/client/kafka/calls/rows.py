"""Requests of several items, each of which has an answer of its own; throttled items are asked again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from broker_core.client.client_errors import ClientError, UnexpectedAnswer
from broker_core.client.kafka.asking import Asking
from broker_core.client.kafka.kafka_errors import NotControllerException, ThrottlingQuotaExceededException

__all__ = ["answered_rows"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


async def answered_rows(
    asking: Asking,
    items: Iterable[K],
    ask: Callable[[list[K]], Awaitable[Mapping[K, V | ClientError]]],
) -> dict[K, V | ClientError]:
    """The answer of each item, in the order of ``items``. ``ask`` asks for some of them.

    An error of the whole request is raised, or if some items are answered already, it is the error of the others.
    """
    wanted = list(items)
    rows: dict[K, V | ClientError] = {}

    async def ask_for_the_rest() -> None:
        rest = [item for item in wanted if item not in rows]
        if not rest:
            return
        answered = await ask(rest)
        moved = next((row for row in answered.values() if isinstance(row, NotControllerException)), None)
        if moved is not None:
            raise moved
        throttled: ThrottlingQuotaExceededException | None = None
        for item in rest:
            if item not in answered:
                rows[item] = UnexpectedAnswer(f"the answer has no row for {item}")
                continue
            row = answered[item]
            if isinstance(row, ThrottlingQuotaExceededException):
                throttled = row
            else:
                rows[item] = row
        if throttled is not None:
            raise throttled

    try:
        await asking.until_answered(ask_for_the_rest)
    except ClientError as failed:
        if not rows:
            raise
        rows |= {item: failed for item in wanted if item not in rows}
    return {item: rows[item] for item in wanted}
