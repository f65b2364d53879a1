"""The row of an API in the table of handlers: its versions, its functions, and its audit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import structlog

from broker_core.catalog import CatalogError
from broker_core.errors import ListingFailed
from broker_core.servers.kafka.requests.call import CloseClient, KafkaCall
from broker_core.servers.kafka.row_error import FAILURES, RowError, error_of, error_row
from broker_core.service import Action, Attempt, AuditRow
from broker_core.wire.kafka import Api, ErrorCode, Fields, RawRows, Reader, error_name

__all__ = ["Answer", "AnswerLater", "HandlerRow", "audited", "of_many", "row_of"]

#: Gives the answer within the deadline of the call.
AnswerLater: TypeAlias = Callable[[KafkaCall], Coroutine[Any, Any, Fields]]
#: Gives the answer itself, in less than a millisecond, or if that takes waiting a coroutine of it.
Answer: TypeAlias = Callable[[KafkaCall], "Fields | Coroutine[Any, Any, Fields]"]

_Answer = TypeVar("_Answer")
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HandlerRow:
    """``answer`` gives the fields of the response; it may raise :exc:`~.call.CloseClient`, and any other error closes
    the connection as an error of this server.

    ``shown_from`` is the first version in the list of ApiVersions, if it is not the first one that is understood.
    """

    api: Api
    answer: Answer
    #: Fills the page of a request that names topics by bytes, ``None``: its parts are asked for (:attr:`answer`).
    fill: Callable[[KafkaCall, RawRows], Awaitable[Fields | None]] | None = None
    #: Reads a request of a version, if not as :meth:`~broker_core.wire.kafka.Api.read_request` does.
    read: Callable[[Reader, int], Fields] | None = None
    shown_from: int | None = None

    async def answered(self, call: KafkaCall) -> Fields:
        """The answer, which may take waiting."""
        made = self.answer(call)
        return made if isinstance(made, dict) else await made

    def read_request(self, reader: Reader, version: int) -> Fields:
        """The body of a request. Raises :exc:`~broker_core.wire.kafka.MalformedMessage`."""
        return (self.read or self.api.read_request)(reader, version)


def of_many(work: Callable[[KafkaCall], Fields]) -> Answer:
    """A handler of requests of many elements: ``work`` on a large one is done beside the event loop."""

    def answer(call: KafkaCall) -> Fields | Coroutine[Any, Any, Fields]:
        return call.services.large_requests.beside(call.size, work, call) if call.size else work(call)

    return answer


async def audited(
    action: Action,
    change: Callable[[KafkaCall], Awaitable[_Answer]],
    rows_of: Callable[[KafkaCall, _Answer], Iterable[AuditRow]],
    refused: Callable[[KafkaCall, RowError], _Answer],
    call: KafkaCall,
) -> _Answer:
    """The answer of ``change`` to a request that changes something; ``rows_of`` reads the result of each from a request
    and its answer.

    A request that only validates has no line in the audit log. An unforeseen exception is logged, and is the answer of
    each row, as Kafka has it: ``refused`` gives an answer of one error.
    """
    attempt = Attempt(action, call.asker, namespace=str(call.namespace))
    call = replace(call, attempt=attempt)
    is_change = not call.body.get("validate_only")
    try:
        answer = await change(call)
    except (asyncio.CancelledError, CloseClient) as error:
        if is_change:
            attempt.ended([AuditRow("", "failed" if isinstance(error, CloseClient) else "abandoned")])
        raise
    except (CatalogError, ListingFailed) as error:
        answer = refused(call, error_of(error))
    except Exception as error:  # noqa: BLE001 - the client gets it, and the log
        _log.error("Kafka change failed", action=action, peer=call.asker.remote_address, exc_info=error)
        answer = refused(call, error_row(ErrorCode.UNKNOWN_SERVER_ERROR))
    if is_change:
        count = sum(len(value) for value in call.body.values() if isinstance(value, list))
        await call.off_loop(count, attempt.ended, rows_of(call, answer))
    return answer


def row_of(target: str, code: int, fields: Mapping[str, int | str | None] = MappingProxyType({})) -> AuditRow:
    """The result of a row of a request whose answer has this code."""
    if not code:
        return AuditRow(target, fields=fields)
    return AuditRow(target, "failed" if code in FAILURES else "refused", error_name(code), fields)
