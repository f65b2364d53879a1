"""The words that say what an answer depends on: one table from words to fields of a request.

A plugin says by ``broker_core_depends_on`` which of these words its answers depend on; caches key on the fields of its
words, and on nothing else of the request. The namespace and the mode are in every key. No key has ``topics_hash`` (what
the client holds is no part of the answer), ``deadline``, or ``asker.connection`` (by which time is shared out).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from broker_core.access import Asker
from broker_core.names import Mode, NamespaceName

__all__ = [
    "EVERYTHING",
    "PROPERTY",
    "WORDS",
    "AnswerKey",
    "KeyedQuestion",
    "checked_words",
    "is_of_properties",
    "key_of",
    "question_text",
    "undeclared",
    "word_of",
]

#: The fields of a request that belong to each word. ``asker.host`` is ``asker.remote_address`` without the port.
WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "pattern": ("pattern", "topics_pattern"),
        "properties": ("properties",),
        "principal": ("asker.role", "asker.original_principal"),
        "client": ("asker.client_version", "asker.protocol_version", "asker.transport"),
        "address": ("asker.host", "asker.remote_address"),
    }
)
#: ``property:NAME`` is one property of the request, ``properties`` is all of them.
PROPERTY: Final = "property:"
#: The words of an answer whose plugin declares none.
EVERYTHING: Final = frozenset(WORDS)

_WORD_OF: Final = {path: word for word, paths in WORDS.items() for path in paths}


def word_of(path: str) -> str | None:
    """The word of a field of a request (``asker.role``, say); ``None`` for a field that shapes no answer."""
    return _WORD_OF.get(path)


def checked_words(words: Collection[object]) -> frozenset[str]:
    """The words of a plugin. Raises :exc:`ValueError`, which lists the known words, for an unknown one."""
    for word in words:
        if isinstance(word, str) and word == word.strip():
            name = word.removeprefix(PROPERTY)
            if word in WORDS or (name != word and name and name == name.strip()):
                continue
        known = ", ".join(map(repr, WORDS))
        raise ValueError(f"the words are {known} and '{PROPERTY}NAME' for one property of that name")
    return frozenset(str(word) for word in words)


def is_of_properties(word: str) -> bool:
    """Whether a word is about properties of the request: all of them, or one."""
    return word == "properties" or word.startswith(PROPERTY)


def undeclared(used: Iterable[str], declared: Collection[str]) -> frozenset[str]:
    """The used words that are not declared; ``properties`` declares every ``property:NAME``."""
    return frozenset(
        word
        for word in used
        if word not in declared and not (word.startswith(PROPERTY) and "properties" in declared)
    )


class KeyedQuestion(Protocol):
    """The question (:class:`~broker_core.plugin_api.listing_request.ListingRequest`)."""

    @property
    def namespace(self) -> NamespaceName: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def topics_pattern(self) -> str | None: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def asker(self) -> Asker: ...


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """The values that an answer depends on, of one request; ``text`` is the approximate bytes of the client's text in
    it.
    """

    namespace: NamespaceName
    mode: Mode
    parts: tuple[Hashable, ...]
    text: int = field(compare=False)


def key_of(request: KeyedQuestion, words: Collection[str], *more: Hashable) -> AnswerKey:
    """The fields of ``request`` that ``words`` name, and ``more``: equal keys, equal answers."""
    text = 0
    parts: list[Hashable] = list(more)
    if "pattern" in words:
        parts.append(("pattern", request.topics_pattern))
        text += len(request.topics_pattern or "")
    properties = _properties(request.properties, words)
    if properties is not None:
        parts.append(("properties", properties))
        text += sum(len(name) + len(value) for name, value in properties)
    parts += _of_asker(request.asker, words)
    # A character takes up to four bytes, and most take one; each string has its own overhead besides.
    return AnswerKey(request.namespace, request.mode, tuple(parts), 2 * text)


def question_text(request: KeyedQuestion, words: frozenset[str]) -> str:
    """The fields of a question that ``words`` name as a text for people; equal texts, equal answers."""
    asker = request.asker
    names = [name for name in (asker.original_principal, asker.role) if name is not None]
    audience = (" of ".join(names) or "nobody") if "principal" in words else "all"
    parts = [f"{request.mode.name} for {audience}"]
    if "pattern" in words and request.topics_pattern is not None:
        parts.append(f"pattern {request.topics_pattern}")
    parts += [f"{name}={value}" for name, value in sorted(_properties(request.properties, words) or ())]
    parts += [f"{word} {detail}" for word, *detail in _of_asker(asker, words - {"principal"})]
    return ", ".join(parts)


def _properties(properties: Mapping[str, str], words: Collection[str]) -> frozenset[tuple[str, str]] | None:
    """The pairs that count; ``None`` if no word is about properties."""
    if "properties" in words:
        return frozenset(properties.items())
    names = {word.removeprefix(PROPERTY) for word in words if word.startswith(PROPERTY)}
    if not names:
        return None
    # Sorted by nothing and complete: a property that is not given is another question than one with any value.
    return frozenset((name, value) for name, value in properties.items() if name in names)


def _of_asker(asker: Asker, words: Collection[str]) -> Iterable[tuple[Hashable, ...]]:
    if "principal" in words:
        yield ("principal", asker.role, asker.original_principal)
    if "client" in words:
        yield ("client", asker.client_version, asker.protocol_version, asker.transport)
    if "address" in words:
        yield ("address", asker.host)
