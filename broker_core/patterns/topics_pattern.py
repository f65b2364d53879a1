"""A compiled topics pattern: its analysis, and matching.

Its scheme is removed before. Whether it matches one of a few names is for most patterns decided by their ranges alone,
in a microsecond.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidPattern
from broker_core.immutable import Sealed, seal_fields
from broker_core.names import DOMAINS, TopicName
from broker_core.redaction import cut_short, quoted

__all__ = ["TopicsPattern", "may_match", "new_pattern", "real_pattern", "strip_scheme"]


def strip_scheme(raw: str) -> str:
    """A pattern without its scheme, by the broker's own rule (docs/reference/pulsar-behaviour.md#topics-patterns).

    The text before the first ``://`` must end in a domain; text before the domain (``^``, say) is kept, text after a
    second ``://`` is lost. Raises :exc:`InvalidPattern` for any other scheme.
    """
    head, separator, rest = raw.partition("://")
    if not separator:
        return raw
    rest = rest.partition("://")[0]
    for domain in sorted(DOMAINS, key=len, reverse=True):
        if head.endswith(domain):
            return head[: -len(domain)] + rest
    raise InvalidPattern(
        f"Invalid topics pattern {quoted(raw)}: Does not support topic domain: {cut_short(head)}"
    )


@final
# A slot for weak references: objects of other classes then have another layout, so that none can be given this class.
@dataclass(frozen=True, slots=True, weakref_slot=True, init=False, repr=False)
class TopicsPattern(Sealed):
    """One compiled pattern, made by :func:`compile_pattern`; immutable.

    ``raw`` is the text that the client sent, ``text`` the same without its scheme. ``supported`` is false if RE2 cannot
    run it (``reason`` says why); then nothing else is known of it. ``literal`` is the one form
    (``tenant/ns/topic``) that can match, ``ranges`` are half-open ``[low, high)`` bounds of forms in UTF-8 order,
    sorted and disjoint, outside of which nothing matches (empty: anything may), ``required`` substrings of every match,
    longest first. ``exact_range`` says that everything in the only range (everything at all, if there is none) matches,
    unless it has a newline. ``program_size`` counts RE2's instructions, a measure of the cost of matching.

    Matches are cached by the text, and trusted: so only the core can make or change a pattern.
    """

    raw: str
    text: str
    reason: str | None
    literal: str | None
    ranges: tuple[tuple[bytes, bytes], ...]
    exact_range: bool
    required: tuple[str, ...]
    match_all: bool
    #: The text that both engines run: anchored at both ends. Empty if unsupported.
    anchored: str
    program_size: int
    #: How a search is narrowed: ``all``, ``literal``, ``range``, ``scan``, or ``unsupported``.
    plan: str = field(compare=False)

    @staticmethod
    def without_scheme(raw: str) -> str:
        """The ``text`` of a pattern as a client sends it, without compiling it.

        Raises :exc:`InvalidPattern` if the scheme is not one of Pulsar's.
        """
        return strip_scheme(raw)

    @property
    def supported(self) -> bool:
        return self.reason is None

    def match_column(self, matched: pa.LargeStringArray) -> pa.BooleanArray:
        """A mask of the forms (``tenant/namespace/topic`` without partition suffix) that match in full.

        Raises :exc:`InvalidPattern` if the pattern is not supported.
        """
        if self.match_all:
            return pc.is_valid(matched)
        if not self.supported:
            raise InvalidPattern(f"Unsupported topics pattern {quoted(self.raw)}: {self.reason}")
        return pc.match_substring_regex(matched, self.anchored)

    def matches(self, name: str) -> bool:
        """Whether one full topic name matches."""
        topic = TopicName.parse(name).partitioned_name
        if self.match_all:
            return True
        form = pa.array([f"{topic.namespace}/{topic.local}"], pa.large_string())
        return bool(self.match_column(form)[0].as_py())

    def shortened(self, length: int) -> TopicsPattern:
        """A pattern with only the beginning of its text, which cannot match: for reports."""
        text = self.raw[:length]
        return new_pattern(text, text, reason=self.reason or "it is cut short")

    def __repr__(self) -> str:
        return f"<TopicsPattern {quoted(self.raw)}: {self.plan}>"


_setters: Final = seal_fields(TopicsPattern)


def new_pattern(
    raw: str,
    text: str,
    *,
    reason: str | None = None,
    literal: str | None = None,
    ranges: tuple[tuple[bytes, bytes], ...] = (),
    exact_range: bool = False,
    required: tuple[str, ...] = (),
    match_all: bool = False,
    anchored: str = "",
    program_size: int = 1,
) -> TopicsPattern:
    plan = "range" if ranges else "scan"
    if reason is not None:
        plan = "unsupported"
    elif match_all:
        plan = "all"
    elif literal is not None:
        plan = "literal"
    facts = (
        raw,
        text,
        reason,
        literal,
        ranges,
        exact_range,
        required,
        match_all,
        anchored,
        program_size,
        plan,
    )
    pattern = object.__new__(TopicsPattern)
    for put, fact in zip(_setters, facts, strict=True):
        put(pattern, fact)
    return pattern


def real_pattern(pattern: TopicsPattern) -> TopicsPattern:
    """The pattern, if :func:`compile_pattern` made it, so that its matches can be trusted. Raises :exc:`TypeError`."""
    if type(pattern) is not TopicsPattern or not hasattr(pattern, "plan"):
        raise TypeError(
            f"a pattern is what broker_core.patterns.compile_pattern(text) gives, not a {type(pattern).__name__}"
        )
    return pattern


#: Instructions of a pattern that is compiled in some microseconds.
_QUICK_PROGRAM: Final = 200
_LOW: Final = itemgetter(0)


def may_match(pattern: TopicsPattern, forms: Sequence[bytes]) -> bool:
    """Whether ``pattern`` matches any of ``forms`` (``tenant/namespace/topic``); also ``True`` if that is costly."""
    ranges = pattern.ranges
    if len(ranges) == 1:
        ((low, high),) = ranges
        forms = [form for form in forms if low <= form < high]
    elif ranges:
        forms = [form for form in forms if _is_within(form, ranges)]
    if forms and pattern.required:
        required = [text.encode() for text in pattern.required]
        forms = [form for form in forms if all(text in form for text in required)]
    if not forms:
        return False
    if (
        pattern.exact_range
        or not pattern.supported
        or pattern.match_all
        or pattern.program_size > _QUICK_PROGRAM
    ):
        return True
    return bool(pc.any(pattern.match_column(pa.array(forms, pa.large_string()))).as_py())


def _is_within(form: bytes, ranges: Sequence[tuple[bytes, bytes]]) -> bool:
    number = bisect_right(ranges, form, key=_LOW) - 1
    return number >= 0 and form < ranges[number][1]
