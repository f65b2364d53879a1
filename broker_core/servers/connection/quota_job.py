"""A request delayed by quotas; its answer is counted against them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.memory import PermitBudget
from broker_core.servers.connection.answer_writer import OutgoingAnswer
from broker_core.servers.connection.command_handler import Closing, Job
from broker_core.service import QuotaTurn

__all__ = ["QuotaJob"]

#: Seconds in which a small answer has its turn to be written.
_WRITING: Final = 10.0


class QuotaJob:
    """Job that waits for its turn under quotas.

    ``handle`` gives the answer, or the job that makes it, once the turn has come; ``refuse`` gives the frame of an
    error.
    """

    __slots__ = ("_handle", "_handled", "_refuse", "_turn")

    def __init__(
        self, turn: QuotaTurn, handle: Callable[[], Job | bytes], refuse: Callable[[ListingFailed], bytes]
    ) -> None:
        self._turn = turn
        self._handle = handle
        self._refuse = refuse
        self._handled = handle() if turn.wait <= 0 else None

    @property
    def _job(self) -> Job | None:
        return None if isinstance(self._handled, bytes) else self._handled

    def small_answer(self) -> bytes | None:
        handled = self._handled
        small = handled if handled is None or isinstance(handled, bytes) else handled.small_answer()
        if small is not None:
            self._turn.spent(len(small))
        return small

    async def answer(self) -> OutgoingAnswer:
        if self._handled is None:
            await self._turn.begin()
            self._handled = self._handle()
        small = self.small_answer()
        if small is not None:
            return OutgoingAnswer(b"", small, b"", asyncio.get_running_loop().time() + _WRITING)
        assert self._job is not None
        answer = await self._job.answer()
        self._turn.spent(answer.size)
        return answer

    def refusal(self, error: Exception) -> bytes | None:
        if self._job is not None:
            refusal = self._job.refusal(error)
            assert not isinstance(refusal, Closing)  # of a protocol that closes, no job comes here
            return refusal
        return self._refuse(error) if isinstance(error, ListingFailed) else None

    def no_place(self) -> bytes:
        if self._job is not None:
            refusal = self._job.no_place()
            assert isinstance(refusal, bytes)
            return refusal
        return self._refuse(
            TooManyRequests("Failed due to too many pending requests", reason="lookups", cause=Cause.QUEUE)
        )

    def holds(self, budget: PermitBudget) -> bool:
        return self._job is not None and self._job.holds(budget)

    def release(self) -> None:
        self._turn.leave()
        if self._job is not None:
            self._job.release()
