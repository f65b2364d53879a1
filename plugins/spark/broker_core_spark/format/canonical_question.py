"""Questions in their canonical form, and the selectors that they consist of.

Questions with equal answers are one question: a pattern counts without its scheme, ``.*`` is no pattern, and only
selecting properties count. The canonical JSON of a question is its line in the questions file. The first 16 bytes of
the line's SHA-256 are its key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from broker_core.errors import InvalidPattern
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode
from broker_core.patterns import TopicsPattern

__all__ = [
    "ANY_LENGTH",
    "DOMAIN_ORDER",
    "KEY_BYTES",
    "MATCH_ALL",
    "CanonicalQuestion",
    "NameSelector",
    "canonical_json",
    "line_key",
    "required_selectors",
]

#: The domains in the order of full names.
DOMAIN_ORDER: Final = (NON_PERSISTENT, PERSISTENT)
KEY_BYTES: Final = 16
MATCH_ALL: Final = ".*"
#: Above the length of any pattern, in UTF-16 code units. The length is checked when questions are loaded.
ANY_LENGTH: Final = 2**31


_quoted: Final = json.encoder.encode_basestring


def canonical_json(value: Any) -> bytes:
    """JSON in UTF-8 with sorted keys, no spaces and no needless escapes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def line_key(line: bytes) -> bytes:
    """The key of a canonical line: 16 bytes."""
    return hashlib.sha256(line).digest()[:KEY_BYTES]


@dataclass(frozen=True, slots=True)
class NameSelector:
    """The choice of names within one namespace and domain.

    ``pattern`` is the text without its scheme, or ``None`` for all names. ``properties`` are sorted, each key once.
    """

    pattern: str | None
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def line(self) -> bytes:
        """The canonical JSON."""
        return f"{{{self.text}}}".encode()

    @property
    def text(self) -> str:
        """The canonical JSON without its braces."""
        # The text of canonical_json in a tenth of its time: every listing makes it.
        pattern = "null" if self.pattern is None else _quoted(self.pattern)
        pairs = ",".join([f"{_quoted(key)}:{_quoted(value)}" for key, value in self.properties])
        return f'"pattern":{pattern},"properties":{{{pairs}}}'

    @property
    def key(self) -> bytes:
        """The 16 bytes that postings are found by."""
        return line_key(self.line)


@dataclass(frozen=True, slots=True)
class CanonicalQuestion:
    """A question in its canonical form. :meth:`of` makes it from a client's question."""

    namespace: str
    mode: Mode
    selector: NameSelector

    @classmethod
    def of(
        cls, namespace: str, mode: Mode, pattern: str | None, properties: Mapping[str, str] | None = None
    ) -> CanonicalQuestion:
        """The question with a raw pattern and selecting ``properties``.

        Raises :exc:`~broker_core.errors.InvalidPattern` for a foreign scheme, and for a pattern with two schemes.
        """
        text = None if pattern is None else TopicsPattern.without_scheme(pattern)
        if text is not None and "://" in text:
            # Compiling the text would remove the second scheme too, so such a pattern is not precomputed.
            raise InvalidPattern(
                f"Invalid topics pattern {pattern!r:.200}: without its scheme it has one still"
            )
        return cls.of_text(namespace, mode, text, properties)

    @classmethod
    def of_text(
        cls, namespace: str, mode: Mode, text: str | None, properties: Mapping[str, str] | None = None
    ) -> CanonicalQuestion:
        """The question with a pattern without its scheme (``TopicsPattern.text``)."""
        pairs = tuple(sorted(properties.items())) if properties else ()
        return cls(namespace, mode, NameSelector(None if text == MATCH_ALL else text, pairs))

    @classmethod
    def parse(cls, line: bytes) -> CanonicalQuestion:
        """The question of a canonical line. Raises :exc:`ValueError` for any other line."""
        try:
            record = json.loads(line)
            mode = Mode[record["mode"]]
            question = cls.of_text(record["namespace"], mode, record["pattern"], record["properties"])
            is_canonical = question.line == line and "://" not in (question.selector.pattern or "")
        except (TypeError, KeyError, AttributeError):  # of another type, or missing
            raise ValueError("a question has a namespace, a mode, a pattern and properties") from None
        if not is_canonical:
            raise ValueError("the line of a question is not in its canonical form")
        return question

    @property
    def line(self) -> bytes:
        """The canonical JSON."""
        mode, namespace = self.mode.name, _quoted(self.namespace)
        return f'{{"mode":"{mode}","namespace":{namespace},{self.selector.text}}}'.encode()

    @property
    def key(self) -> bytes:
        """The 16 bytes that the question is looked up by."""
        return line_key(self.line)

    @property
    def domains(self) -> tuple[str, ...]:
        """The listed domains, in the order of full names."""
        return tuple(domain for domain in DOMAIN_ORDER if self.mode.lists(domain))


def required_selectors(
    questions: Iterable[CanonicalQuestion],
) -> dict[tuple[str, str], tuple[NameSelector, ...]]:
    """The selectors of each (namespace, domain), sorted by key, each once."""
    wanted: dict[tuple[str, str], dict[bytes, NameSelector]] = {}
    for question in questions:
        key = question.selector.key
        for domain in question.domains:
            wanted.setdefault((question.namespace, domain), {})[key] = question.selector
    return {place: tuple(found[key] for key in sorted(found)) for place, found in wanted.items()}
