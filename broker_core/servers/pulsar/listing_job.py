"""A listing of a Pulsar client: its command as a request, and its answer as a frame, or the error in its place.

Small answers are kept encoded, for clients that ask one question again and again. A regex consumer asks its question
every minute, and mostly many consumers ask the same one. An answer that is made a second time is kept. It is sent again
while it is right: the lister is asked each time, and must still have the listing that the answer was made of. Questions
that are asked once each displace nothing.

The patterns that clients list with are remembered too: Java looks its pattern up as if it were a topic
(:mod:`~broker_core.servers.pulsar.pattern_lookups`).
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from broker_core.access import Asker
from broker_core.errors import Cause, InvalidName, ListingFailed, ResponseTooLarge, TooManyRequests
from broker_core.listing import varint
from broker_core.memory import SMALL_ANSWER, BoundedCache, PermitBudget
from broker_core.metrics import Metrics
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Answer, Ended, Pipeline, QuestionText, ReusableAnswer
from broker_core.plugin_api import ListingRequest
from broker_core.servers.connection import OutgoingAnswer
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar import MAX_COMMAND_SIZE, CommandGetTopicsOfNamespace, FrameError, commands

__all__ = [
    "OWN_CLIENTS",
    "TOO_MANY_LOOKUPS",
    "ClientPatterns",
    "FailingJob",
    "ListingClient",
    "ListingJob",
    "Question",
    "SmallAnswers",
    "SmallListingJob",
    "looks_like_a_pattern",
    "question_of",
    "question_text",
    "read_listing_request",
]

#: The beginning of the client version that each client of this project sends.
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
        """Whether the job holds memory of a budget."""
        return False


class ListingJob(FailingJob):
    """Job of one listing.

    ``uncompiled`` is a pattern that takes a thread to compile; ``answer`` is the pipeline's, if known at once.
    """

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


#: The most bytes of all kept answers, with the overhead of each.
_LIMIT: Final = 8 * 1024 * 1024
#: Bytes of the topics of one of them: of larger answers, reading the request is a small part of the work.
_LARGEST: Final = 16 * 1024
#: Bytes that an answer takes besides its frame and the text of its question.
_OVERHEAD: Final = 1024
#: Bytes in front of the topics at the most.
_LONGEST_HEAD: Final = 32
#: Remembered questions that were asked once, about twice as many as kept answers.
_SEEN_ONCE: Final = 8192

#: Namespace, mode, pattern and hash as the client sent them.
Question: TypeAlias = tuple[str, int, str | None, str | None]


class _Encoded:
    """An answer without the number of its request."""

    __slots__ = ("_heads", "_rest", "_size", "reusable")

    def __init__(self, reusable: ReusableAnswer, body: bytes | memoryview) -> None:
        _, tail = _ends(0, len(body), reusable)
        self.reusable = reusable
        self._size = len(body)
        self._rest = b"".join((body, tail))
        self._heads: dict[int, bytes] = {}  # by the length of the request's number

    @property
    def most(self) -> int:
        """Bytes that the frame has at the most."""
        return len(self._rest) + _LONGEST_HEAD

    def frame(self, request_id: int) -> bytes:
        """The whole frame of the answer to one request."""
        number = varint(request_id)
        head = self._heads.get(len(number))
        if head is None:
            whole, _ = _ends(request_id, self._size, self.reusable)
            head = self._heads[len(number)] = whole[: -len(number)]
        return b"".join((head, number, self._rest))


class SmallAnswers:
    """The small answers of one server; for one event loop."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._kept: BoundedCache[Question, _Encoded] = BoundedCache(_LIMIT)
        pipeline.permits.caches.show_bounded("small answers", self._kept)
        self._seen_once: set[int] = set()  # the hashes of questions

    def again(
        self, key: Question, asker: Asker, request_id: int, frame_limit: int | None
    ) -> tuple[bytes, Ended] | None:
        """The frame of a kept answer, counted as a listing, if it is still right; else ``None``.

        With it comes a function to call once it was sent, or could not be. An answer is kept for all, so whether this
        asker may have it is decided before it is looked for.
        """
        if self._pipeline.authorization.listed(asker, key[0]) is not True:
            return None
        topics_hash = key[3]
        kept = self._find(key)
        if kept is None and topics_hash is not None:
            # A client whose hash no longer holds gets the answer of a client without one.
            key = (*key[:3], None)
            kept = self._find(key)
            if kept is not None and kept.reusable.topics_hash == topics_hash:
                return None
        if kept is None or (frame_limit is not None and kept.most > frame_limit):
            return None
        ended = self._pipeline.answer_again(kept.reusable, asker)
        if ended is None:
            self._kept.pop(key)
            self._seen_once.add(hash(key))  # more than once, so that the next answer is kept at once
            return None
        return kept.frame(request_id), ended

    def keep(
        self,
        key: Question,
        request_id: int,
        frame_limit: int | None,
        request: ListingRequest,
        answer: Answer,
    ) -> bytes | None:
        """The frame of an answer, which is kept for the next question of its kind; ``None`` if it is not kept."""
        selection = answer.selection
        if "principal" in self._pipeline.lister.depends_on:  # the key of a question does not have the asker
            return None
        if selection is not None and selection.fields_size > _LARGEST:
            return None
        namespace, mode, pattern, _ = key
        if selection is not None:
            key = (namespace, mode, pattern, None)
        if not self._is_repeated(key):
            return None
        reusable = ReusableAnswer.of(request, answer)
        if reusable is None:
            return None
        encoded = _Encoded(reusable, b"" if selection is None else selection.body())
        if frame_limit is not None and encoded.most > frame_limit:
            return None
        texts = len(namespace) + 4 * len(pattern or "")
        self._kept.put(key, encoded, _OVERHEAD + encoded.most + texts)
        return encoded.frame(request_id)

    def _find(self, key: Question) -> _Encoded | None:
        return self._kept.get(key) if key in self._kept else None  # to look needs no lock

    def _is_repeated(self, key: Question) -> bool:
        """Whether a question was asked before, of late; notes that it was."""
        seen, mark = self._seen_once, hash(key)
        if mark in seen:
            return True
        if len(seen) >= _SEEN_ONCE:
            seen.clear()
        seen.add(mark)
        return False


def question_of(question: CommandGetTopicsOfNamespace) -> Question | None:
    """The key of a client's question; ``None`` if its answer depends on more than the key has."""
    if question.properties:
        return None
    return (
        question.namespace,
        question.mode,
        question.topics_pattern if question.HasField("topics_pattern") else None,
        question.topics_hash if question.HasField("topics_hash") else None,
    )


def _ends(request_id: int, size: int, reusable: ReusableAnswer) -> tuple[bytes, bytes]:
    return commands.get_topics_response_head(
        request_id,
        size,
        topics_hash=reusable.topics_hash,
        filtered=reusable.filtered,
        changed=reusable.changed,
    )


#: The most bytes of remembered patterns, and the bytes of each besides its text.
_PATTERNS: Final = 1024 * 1024
_EACH_PATTERN: Final = 200
#: The characters that hardly any topic has in its name, and most patterns have.
_SPECIAL: Final = re.compile(r"[\\^$*+?()\[\]{}|]")


class ClientPatterns:
    """Patterns by principal and host: the pattern of one client may be the name of another's topic."""

    def __init__(self) -> None:
        self._patterns: BoundedCache[tuple[str | None, str | None, str, str], bool] = BoundedCache(_PATTERNS)
        #: Names of topics that look like patterns.
        self._topics: BoundedCache[tuple[str | None, str | None, str, str], bool] = BoundedCache(_PATTERNS)

    def note(self, asker: Asker, text: str) -> None:
        """Note that a client asked with this pattern."""
        if not looks_like_a_pattern(text):
            self._patterns.put(_pattern_key(asker, text), True, _EACH_PATTERN + 2 * len(text))

    def note_topic(self, asker: Asker, text: str) -> None:
        """Note that a client got the partitions of a topic of this name that it may create, as it does before it
        produces or consumes, and never for a pattern. The LOOKUP that follows may create the topic.
        """
        self._topics.put(_pattern_key(asker, text), True, _EACH_PATTERN + 2 * len(text))

    def __contains__(self, patterns: tuple[Asker, str]) -> bool:
        """Whether the text is a pattern of this client."""
        if looks_like_a_pattern(patterns[1]):
            return _pattern_key(*patterns) not in self._topics
        return _pattern_key(*patterns) in self._patterns


def looks_like_a_pattern(text: str) -> bool:
    """Whether a text has a character that regular expressions are made of, other than a dot."""
    return _SPECIAL.search(text) is not None


def _pattern_key(asker: Asker, text: str) -> tuple[str | None, str | None, str, str]:
    return asker.role, asker.original_principal, asker.host, text
