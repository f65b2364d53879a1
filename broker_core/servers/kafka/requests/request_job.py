"""An asynchronous Kafka request: its answer as a frame, or the closed connection."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final

from broker_core.errors import TooManyRequests
from broker_core.listing import FieldsReader
from broker_core.memory import SMALL_ANSWER, PermitBudget
from broker_core.pipeline import one_line_of_denials
from broker_core.servers.connection import Closing, OutgoingAnswer
from broker_core.servers.kafka.large_requests import LARGE, let_go
from broker_core.servers.kafka.request_metrics import CLOSED, CUT, error_in
from broker_core.servers.kafka.requests.call import CloseClient, HandlerRow, KafkaCall, or_close
from broker_core.wire.kafka import Buffer, Encoded, EncodedRows, Fields, MalformedMessage, response_frame

__all__ = ["RequestJob", "closing"]

#: Bytes of an answer that is put together as one piece.
_WRITTEN_AT_ONCE: Final = 256 * 1024
#: The most seconds for which a client is asked to pause, and is not read.
_MOST_THROTTLED: Final = 30.0


class RequestJob:
    """The job of one request; a connection has one at a time: Kafka's answers are in the order of the requests.

    ``begun`` is the handler's coroutine, if it was called already. ``read`` reads the body of a large request, in a
    thread, since its elements may take a second; unless it ``is_quick``: two threads would wait for each other.

    A large answer holds heap permits for its own bytes until they are written: clients that read slowly share the
    permits of all requests, and are closed if others wait for them. Data that it shares with others stays for it.
    """

    __slots__ = ("_begun", "_call", "_is_quick", "_is_shared", "_read", "_row")

    def __init__(
        self,
        row: HandlerRow,
        call: KafkaCall,
        begun: Coroutine[Any, Any, Fields] | None = None,
        *,
        read: Callable[[], Fields] | None = None,
        is_quick: bool = False,
    ) -> None:
        self._row = row
        self._call = call
        self._begun = begun
        self._read = read
        self._is_quick = is_quick
        self._is_shared = False

    def small_answer(self) -> bytes | None:
        return None

    async def answer(self) -> OutgoingAnswer:
        try:
            return await self._answered()
        except BaseException as error:
            self._call.services.requests.ended(
                self._row.api.name,
                CUT if isinstance(error, asyncio.CancelledError) else CLOSED,
                self._seconds,
            )
            raise

    @property
    def _seconds(self) -> float:
        return asyncio.get_running_loop().time() - self._call.began

    @property
    def _reports_throttle(self) -> bool:
        return self._row.api.response.has("throttle_time_ms", self._call.version)

    async def _answered(self) -> OutgoingAnswer:
        call = self._call
        if call.turn is not None:
            await call.turn.begin()
        async with call.services.large_requests.turn(call.size, call.asker):
            if call.turn is not None or call.size > LARGE:
                # Its time begins with its turn: of its quota, and among the large ones, however many are before it.
                call = replace(
                    call, deadline=asyncio.get_running_loop().time() + call.services.options.time_budget
                )
            try:
                async with asyncio.timeout_at(call.deadline):
                    with one_line_of_denials():
                        fields = await self._fields(call)
                    error = error_in(fields)
                    pieces = await self._framed(fields)
                    throttle = 0.0
                    if call.turn is not None:
                        call.turn.spent(sum(map(len, pieces)))
                        throttle = min(call.turn.debt, _MOST_THROTTLED)
                        # A released answer cannot be framed again: instead, its client is not read for as long.
                        if throttle > 0 and call.size <= LARGE and self._reports_throttle:
                            fields = {**fields, "throttle_time_ms": math.ceil(throttle * 1000)}
                            pieces = await self._framed(fields)
                    # A view is of a table, which has permits of its own, or of data for which the call holds permits.
                    size = sum(len(piece) for piece in pieces if not isinstance(piece, memoryview))
                    self._is_shared = bool(call.pinned)
                    if size > SMALL_ANSWER:
                        await call.hold(size)
            except TimeoutError:
                raise CloseClient("no answer in time") from None
        call.services.requests.ended(self._row.api.name, error, self._seconds)
        return OutgoingAnswer(b"", FieldsReader.of_pieces(pieces), b"", call.deadline, throttle)

    async def _fields(self, call: KafkaCall) -> Fields:
        """The handler's answer, of the request once it is read, by the ACLs that there are now."""
        if self._begun is not None:
            return await self._begun
        if (read := self._read) is not None:
            try:
                body = (
                    read() if self._is_quick else await call.services.large_requests.beside(call.size, read)
                )
            except MalformedMessage as error:
                raise CloseClient(str(error), "bad_frame") from error
            call = replace(call, body=body)
        with or_close():
            await call.services.authorizer.refresh(call)
        return await self._row.answered(call)

    async def _framed(self, fields: Fields) -> list[Buffer]:
        call = self._call

        # Rows that are encoded already take no time.
        is_long = call.size > LARGE and not any(
            isinstance(value, Encoded | EncodedRows) for value in fields.values()
        )

        def encode() -> list[Buffer]:
            framed = response_frame(self._row.api, call.version, call.header.correlation_id, fields)
            if is_long:
                let_go(fields)
            return framed

        try:
            pieces = await call.services.large_requests.beside(call.size, encode) if is_long else encode()
        except OverflowError as error:
            raise CloseClient(str(error)) from None
        # Each write wakes the client: the bytes of a page are quicker copied.
        return [b"".join(pieces)] if sum(map(len, pieces)) <= _WRITTEN_AT_ONCE else pieces

    def refusal(self, error: Exception) -> Closing | None:
        if isinstance(error, TooManyRequests):  # no memory to write it
            error = CloseClient(error.message)
        return closing(self._row, error) if isinstance(error, CloseClient) else None

    def no_place(self) -> Closing:
        return closing(self._row, CloseClient("too many requests are under way"))

    def holds(self, budget: PermitBudget) -> bool:
        permits = self._call.services.pipeline.permits
        if self._is_shared and budget in {permits.snapshots, permits.unkept}:
            return True  # the memory that it reads cannot be freed
        return any(permit.budget is budget for permit in self._call.held)

    def release(self) -> None:
        if self._begun is not None:
            self._begun.close()  # it had no place
        if self._call.turn is not None:
            self._call.turn.leave()
        self._call.release()


def closing(row: HandlerRow, error: CloseClient) -> Closing:
    """The end of a connection whose request gets no answer."""
    return Closing(error.reason, "Kafka request not answered", {"api": row.api.name, "error": str(error)})
