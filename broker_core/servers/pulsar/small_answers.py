"""Encoded small answers, for clients that ask one question again and again.

A regex consumer asks its question every minute, and mostly many consumers ask the same one. An answer that is made a
second time is kept, encoded. It is sent again while it is right: the lister is asked each time, and must still have the
listing that the answer was made of. Questions that are asked once each displace nothing.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from broker_core.access import Asker
from broker_core.listing import varint
from broker_core.memory import BoundedCache
from broker_core.pipeline import Answer, Ended, Pipeline, ReusableAnswer
from broker_core.plugin_api import ListingRequest
from broker_core.wire.pulsar import CommandGetTopicsOfNamespace, commands

__all__ = ["Question", "SmallAnswers", "question_of"]

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
