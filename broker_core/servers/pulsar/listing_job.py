"""A listing of a Pulsar client: its command as a request, and its answer as a frame, or the error in its place."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from broker_core.access import Asker
from broker_core.errors import Cause, InvalidName, ListingFailed, ResponseTooLarge, TooManyRequests
from broker_core.memory import SMALL_ANSWER, PermitBudget
from broker_core.metrics import Metrics
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Answer, Ended, Pipeline, QuestionText
from broker_core.plugin_api import ListingRequest
from broker_core.servers.connection import OutgoingAnswer
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar import MAX_COMMAND_SIZE, CommandGetTopicsOfNamespace, FrameError, commands

__all__ = [
    "OWN_CLIENTS",
    "TOO_MANY_LOOKUPS",
    "FailingJob",
    "ListingClient",
    "ListingJob",
    "SmallListingJob",
    "question_text",
    "read_listing_request",
]

#: How the version of each client of this project begins.
OWN_CLIENTS: Final = "broker-core-"
TOO_MANY_LOOKUPS: Final = "Failed due to too many pending lookup requests"


@dataclass(frozen=True, slots=True)
class ListingClient:
    """The client of one connection's listings. ``frame_limit`` is its largest frame (``None``: it has no limit)."""

    pipeline: Pipeline
    metrics: Metrics
    frame_limit: int | None

    def refuse(self, request_id: int, question: QuestionText, asker: Asker, failure: ListingFailed) -> bytes:
        """The error for the client in place of a listing; it is counted, and reported as the listing's outcome."""
        self.pipeline.refused(question, asker, failure)
        return self.error(request_id, failure)

    def error(self, request_id: int, failure: ListingFailed) -> bytes:
        """The error in place of a listing whose outcome is reported elsewhere."""
        self.metrics.refused(failure.reason)
        return commands.error(request_id, failure.code, failure.message)


class FailingJob(ABC):
    """Base of jobs that refuse by the failure of a listing."""

    __slots__ = ()

    def small_answer(self) -> bytes | None:
        """``None``: no answer is known before it is asked for."""
        return None

    def refusal(self, error: Exception) -> bytes | None:
        """The error for the client; ``None`` if the connection has to end."""
        return self.refuse(error) if isinstance(error, ListingFailed) else None

    def no_place(self) -> bytes:
        """The error for a client that has too many requests under way."""
        return self.refuse(TooManyRequests(TOO_MANY_LOOKUPS, reason="lookups", cause=Cause.QUEUE))

    @abstractmethod
    def refuse(self, failure: ListingFailed) -> bytes:
        """The error for the client, which is reported."""

    def holds(self, _budget: PermitBudget) -> bool:
        """Whether it holds memory of a budget."""
        return False


class ListingJob(FailingJob):
    """``uncompiled`` is a pattern that takes a thread to compile; ``answer`` is the pipeline's, if known at once."""

    __slots__ = ("_answer", "_client", "_request", "_request_id", "_uncompiled")

    def __init__(
        self,
        client: ListingClient,
        request_id: int,
        request: ListingRequest,
        uncompiled: str | None,
        answer: Answer | None,
    ) -> None:
        self._client = client
        self._request_id = request_id
        self._request = request
        self._uncompiled = uncompiled
        self._answer = answer

    def small_answer(self) -> bytes | None:
        answer = self._answer
        if answer is None:
            return None
        size = answer.fields_size
        if size > SMALL_ANSWER:
            return None
        head, tail = self._ends(answer, size)
        return head + tail if answer.selection is None else b"".join((head, answer.selection.body(), tail))

    async def answer(self) -> OutgoingAnswer:
        answer = self._answer
        if answer is None:
            answer = await self._client.pipeline.answer(self._request, topics_pattern=self._uncompiled)
            self._answer = answer
        head, tail = self._ends(answer, answer.fields_size)
        body = b"" if answer.selection is None else answer.selection.reader()
        return OutgoingAnswer(head, body, tail, self._request.deadline)

    def refuse(self, failure: ListingFailed) -> bytes:
        if self._answer is not None:
            self._answer.release(failure)
            return self._client.error(self._request_id, failure)
        request = self._request
        question = QuestionText.of(request, self._uncompiled)
        return self._client.refuse(self._request_id, question, request.asker, failure)

    def holds(self, budget: PermitBudget) -> bool:
        return self._answer is not None and self._answer.holds(budget, self._client.pipeline.permits.leases)

    def release(self) -> None:
        if self._answer is not None:
            self._answer.release()

    def _ends(self, answer: Answer, size: int) -> tuple[bytes, bytes]:
        """The bytes before and after the ``size`` bytes of an answer's topics.

        Raises :exc:`ListingFailed` if the client could not read it.
        """
        try:
            head, tail = commands.get_topics_response_head(
                self._request_id,
                size,
                topics_hash=answer.topics_hash,
                filtered=answer.filtered,
                changed=answer.changed,
                warnings=self._warnings(answer),
            )
        except FrameError:
            raise ResponseTooLarge(size, MAX_COMMAND_SIZE, answer.topics) from None
        size += len(head) + len(tail)
        limit = self._client.frame_limit
        if limit is not None and size > limit:
            raise ResponseTooLarge(size, limit, answer.topics)
        return head, tail

    def _warnings(self, answer: Answer) -> Iterable[str]:
        """The warnings about the question, for the clients that read them: the answers of others stay as Pulsar's."""
        if not answer.warnings or not self._request.asker.client_version.startswith(OWN_CLIENTS):
            return ()
        return (warning.text for warning in answer.warnings if warning.kind != "unfiltered")


class SmallListingJob(FailingJob):
    """A listing whose answer is a small frame that is ready; ``ended`` is called when it was sent, or could not be."""

    __slots__ = ("_client", "_ended", "_frame", "_request_id")

    def __init__(self, client: ListingClient, request_id: int, frame: bytes, ended: Ended) -> None:
        self._client = client
        self._request_id = request_id
        self._frame = frame
        self._ended: Ended | None = ended

    def small_answer(self) -> bytes:
        return self._frame

    async def answer(self) -> OutgoingAnswer:
        deadline = asyncio.get_running_loop().time() + self._client.pipeline.options.time_budget
        return OutgoingAnswer(b"", self._frame, b"", deadline)

    def refuse(self, failure: ListingFailed) -> bytes:
        self._end(failure)
        return self._client.error(self._request_id, failure)

    def release(self) -> None:
        self._end(None)

    def _end(self, unsent: ListingFailed | None) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(unsent)


_MODES = {mode.value: mode for mode in Mode}


def question_text(command: CommandGetTopicsOfNamespace) -> QuestionText:
    """The question of a command, which may not be valid."""
    mode = _MODES.get(command.mode)
    return QuestionText(
        command.namespace,
        None if mode is None else mode.name,
        command.topics_pattern if command.HasField("topics_pattern") else None,
        ((pair.key, pair.value) for pair in command.properties),
    )


def read_listing_request(
    command: CommandGetTopicsOfNamespace,
    asker: Asker,
    pipeline: Pipeline,
    limits: LimitsSettings,
    now: float,
) -> tuple[ListingRequest, str | None]:
    """The request of a command, and its pattern if that takes a thread to compile: then the request is without it.

    Raises :exc:`ListingFailed` with the code for the client.
    """
    try:
        namespace = NamespaceName.parse(command.namespace)
    except InvalidName as error:
        raise ListingFailed(str(error), cause=Cause.NAME, reason="bad_namespace") from None
    mode = _MODES.get(command.mode)
    if mode is None:
        raise ListingFailed(
            f"Invalid mode {command.mode}: one of 0 (persistent), 1 (non-persistent), 2 (all)",
            cause=Cause.BAD_REQUEST,
            reason="bad_request",
        )
    return pipeline.question(
        limits,
        asker,
        namespace,
        mode,
        command.topics_pattern if command.HasField("topics_pattern") else None,
        [(pair.key, pair.value) for pair in command.properties],
        deadline=now + pipeline.options.time_budget,
        topics_hash=command.topics_hash if command.HasField("topics_hash") else None,
    )
