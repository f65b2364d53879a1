"""Small answers as they are sent, for the clients that ask the same question again and again.

A regex consumer asks its question every minute, and as a rule many consumers ask the same one. Its answer is encoded
once. It is sent again while it stands: the lister is asked each time, and has to have the very listing that the answer
was made of.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from broker_core.listing.topic_field import varint
from broker_core.memory.bounded_cache import BoundedCache
from broker_core.pipeline import Answer, Pipeline, StandingAnswer
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.wire.pulsar import CommandGetTopicsOfNamespace, commands

__all__ = ["SmallAnswers"]

#: Bytes of all answers that are kept, with what is kept for each.
_LIMIT: Final = 8 * 1024 * 1024
#: Bytes of the topics of one of them: of larger answers, reading the request is a small part of the work.
_LARGEST: Final = 16 * 1024
#: Bytes that an answer takes besides its frame and the text of its question.
_OVERHEAD: Final = 1024
#: Bytes in front of the topics at the most.
_LONGEST_HEAD: Final = 32

#: Namespace, mode, pattern and hash as the client sent them.
_Question: TypeAlias = tuple[str, int, str | None, str | None]


class _Encoded:
    """An answer without the number of its request."""

    __slots__ = ("_heads", "_rest", "_size", "standing")

    def __init__(self, standing: StandingAnswer, body: bytes) -> None:
        _, tail = _ends(0, len(body), standing)
        self.standing = standing
        self._size = len(body)
        self._rest = body + tail
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
            whole, _ = _ends(request_id, self._size, self.standing)
            head = self._heads[len(number)] = whole[: -len(number)]
        return b"".join((head, number, self._rest))


class SmallAnswers:
    """The small answers of one server; for one event loop."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._kept: BoundedCache[_Question, _Encoded] = BoundedCache(_LIMIT)

    def again(self, question: CommandGetTopicsOfNamespace, frame_limit: int | None) -> bytes | None:
        """The frame of the answer, which is counted as a listing, where one that was kept stands; else ``None``."""
        if question.properties:
            return None
        key = _key(question)
        kept = self._kept.get(key)
        if kept is None and key[3] is not None:
            # A client whose hash holds no more has the answer of a client without any.
            key = (*key[:3], None)
            kept = self._kept.get(key)
            if kept is not None and kept.standing.topics_hash == question.topics_hash:
                return None
        if kept is None or (frame_limit is not None and kept.most > frame_limit):
            return None
        if not self._pipeline.answer_again(kept.standing):
            self._kept.pop(key)
            return None
        return kept.frame(question.request_id)

    def keep(
        self,
        question: CommandGetTopicsOfNamespace,
        request: ListingRequest,
        answer: Answer,
        frame_limit: int | None,
    ) -> bytes | None:
        """The frame of an answer, which is kept for the next who asks; ``None`` where it is none that can be kept."""
        selection = answer.selection
        if selection is not None and selection.fields_size > _LARGEST:
            return None
        standing = StandingAnswer.of(request, answer)
        if standing is None:
            return None
        encoded = _Encoded(standing, b"" if selection is None else bytes(selection.body()))
        if frame_limit is not None and encoded.most > frame_limit:
            return None
        namespace, mode, pattern, topics_hash = _key(question)
        key = (namespace, mode, pattern, topics_hash if selection is None else None)
        texts = len(namespace) + 4 * len(pattern or "")
        self._kept.put(key, encoded, _OVERHEAD + encoded.most + texts)
        return encoded.frame(question.request_id)


def _key(question: CommandGetTopicsOfNamespace) -> _Question:
    return (
        question.namespace,
        question.mode,
        question.topics_pattern if question.HasField("topics_pattern") else None,
        question.topics_hash if question.HasField("topics_hash") else None,
    )


def _ends(request_id: int, size: int, standing: StandingAnswer) -> tuple[bytes, bytes]:
    return commands.get_topics_response_head(
        request_id,
        size,
        topics_hash=standing.topics_hash,
        filtered=standing.filtered,
        changed=standing.changed,
    )
