"""Requests of several items, each of which has an answer of its own; throttled items are asked again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from broker_core.client.client_errors import ClientError, UnexpectedAnswer
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.kafka_errors import (
    KafkaException,
    NotControllerException,
    ThrottlingQuotaExceededException,
    kafka_error,
)
from broker_core.client.kafka.pages import Connect
from broker_core.wire.kafka import Api, Fields

__all__ = ["answered_rows", "errors_by", "row_error"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


async def answered_rows(
    attempts: Attempts,
    items: Iterable[K],
    connect: Connect,
    api: Api,
    request_of: Callable[[list[K]], Fields],
    rows_of: Callable[[Fields, list[K]], Mapping[K, V | ClientError]],
    *,
    least: int = 0,
) -> dict[K, V | ClientError]:
    """The answer of each item, in the order of ``items``: the request for some of them is made by ``request_of``, its
    answer read by ``rows_of``. Without items nothing is sent.

    An error of the whole request is raised, or if some items are answered already, it is the error of the others.
    """
    wanted = list(items)
    rows: dict[K, V | ClientError] = {}

    async def ask_for_the_rest() -> None:
        rest = [item for item in wanted if item not in rows]
        if not rest:
            return
        connection = await connect(attempts)
        answered = rows_of(await connection.ask(api, request_of(rest), least=least), rest)
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
        await attempts.until_answered(ask_for_the_rest)
    except ClientError as failed:
        if not rows:
            raise
        rows |= {item: failed for item in wanted if item not in rows}
    return {item: rows[item] for item in wanted}


def row_error(row: Fields) -> KafkaException | None:
    """The error of a row of an answer; ``None`` for a row without one."""
    return kafka_error(row["error_code"], row.get("error_message"))


def errors_by(array: str, key: str) -> Callable[[Fields, list[K]], dict[K, ClientError | None]]:
    """Reads the errors of an answer: the rows of ``array`` by the field ``key``, or none for a row without one."""
    return lambda answer, _: {row[key]: row_error(row) for row in answer[array]}
