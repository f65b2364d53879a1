"""Comparing what two servers answer: the same bytes, but for ids, versions and times that each server makes itself."""

from __future__ import annotations

import base64
import re
import uuid
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from broker_core.wire.pulsar import BaseCommand

__all__ = ["Pairs", "Token"]

#: What one server calls a thing, and what the other one does.
Token = tuple[str, str]

#: Ids of topics, the stamps of versions, and entity tags of topics, which are digests of an id with the rest.
_RANDOM: Final = re.compile(
    rb"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{22}(?=[^A-Za-z0-9_=-]|$)|(?<=\.)[0-9a-f]{24}(?![0-9a-f])"
    rb'|(?:(?<=Etag: ")|(?<=ETag \\"))[0-9a-f]{32}(?=\\?")'
)
_TIME: Final = re.compile(rb'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)|(?<="ms":) ?[0-9.e-]+')
#: The length of an answer with times in it, whose digits are as many as they are.
_LENGTH: Final = re.compile(rb"Content-Length: \d+")
#: Where a client's connection comes from.
_PORT: Final = re.compile(rb"(127\.\d+\.\d+\.\d+):\d+")
_MOST: Final = 300


class Pairs:
    """Which random text of the second server is which of the first one; and tokens for further requests, by kind."""

    def __init__(self) -> None:
        self._firsts: dict[bytes, bytes] = {}
        self._seconds: dict[bytes, bytes] = {}
        self._tokens: dict[str, list[Token]] = {}
        self._seen: dict[str, set[Token]] = {}
        #: Listings of Pulsar clients with the hash of their answers.
        self.again: deque[BaseCommand] = deque(maxlen=_MOST)
        #: The targets of requests over HTTP, with the entity tags of their answers.
        self.tagged: deque[tuple[Token, Token]] = deque(maxlen=_MOST)

    def translated(self, first: bytes, second: bytes) -> tuple[bytes, bytes]:
        """Both answers, the second one in the first one's words as far as these are known or can be learned."""
        if first == second:
            return first, second
        first, second = map(_timeless, (first, second))
        ours, others = _RANDOM.findall(first), _RANDOM.findall(second)
        if len(ours) == len(others) and b"\0" not in first:  # in a column of Arrow, ids have no ends
            for mine, other in zip(ours, others, strict=True):
                self.learn(mine, other)
        second = _RANDOM.sub(lambda found: self._seconds.get(found[0], found[0]), second)
        if first != second and len(first) == len(second):
            # Ids that stand in no words, such as in a column of Arrow or behind a damaged message of Kafka.
            for mine, other in self._firsts.items():
                second = second.replace(other, mine)
                if len(mine) == 22:
                    second = second.replace(_raw(other), _raw(mine))
        return first, second

    def translated_ids(
        self, first: bytes, second: bytes, ids: Iterator[tuple[uuid.UUID, uuid.UUID]]
    ) -> tuple[bytes, bytes]:
        """Both answers of a binary protocol, with these ids in the same places."""
        for mine, other in ids:
            if mine != other and self.learn(_text(mine), _text(other)):
                second = second.replace(other.bytes, mine.bytes)
        return self.translated(first, second)

    def learn(self, mine: bytes, other: bytes) -> bool:
        """Take both for one thing, and say whether they are; a text that stands for two things is a difference."""
        if self._firsts.setdefault(mine, other) != other or self._seconds.setdefault(other, mine) != mine:
            return False
        if len(mine) == 22:
            self.note("id", mine.decode(), other.decode())
        return True

    def note(self, kind: str, first: str, second: str) -> None:
        """Keep something of an answer for further requests, such as a cursor."""
        seen, tokens = self._seen.setdefault(kind, set()), self._tokens.setdefault(kind, [])
        if (first, second) not in seen:
            seen.add((first, second))
            tokens.append((first, second))
            if len(tokens) > _MOST:
                seen.remove(tokens.pop(0))

    def drawn(self, random: Random, kind: str) -> Token | None:
        """One of what was kept, the later ones more often."""
        tokens = self._tokens.get(kind)
        if not tokens:
            return None
        return tokens[-1 - int(len(tokens) * random.random() ** 2)]


def _timeless(answer: bytes) -> bytes:
    answer, times = _TIME.subn(b"<time>", _PORT.sub(rb"\1", answer))
    return _LENGTH.sub(b"Content-Length: <of times>", answer) if times else answer


def _raw(text: bytes) -> bytes:
    return base64.urlsafe_b64decode(text + b"==")


def _text(value: uuid.UUID) -> bytes:
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=")


def ids_in(first: Any, second: Any) -> Iterator[tuple[uuid.UUID, uuid.UUID]]:
    """The ids in the same places of two decoded answers."""
    if isinstance(first, uuid.UUID) and isinstance(second, uuid.UUID):
        yield first, second
    elif isinstance(first, dict) and isinstance(second, dict):
        for name in first.keys() & second.keys():
            yield from ids_in(first[name], second[name])
    elif isinstance(first, list) and isinstance(second, list):
        for mine, other in zip(first, second, strict=False):
            yield from ids_in(mine, other)
