"""Topics patterns: what a Pulsar broker matches, by RE2 only, and what can be known of a pattern before it runs.

A pattern loses its scheme and must then match ``tenant/namespace/topic`` in full, where the topic has no partition
suffix (docs/reference/pulsar-behaviour.md#topics-patterns). Two engines run the same text: google-re2, which compiles
and bounds it and gives its range, and Arrow's RE2 kernel, which runs it over a column. A pattern that RE2 refuses is
never given to a backtracking engine; it is *unsupported* where another dialect may know it, and an
:exc:`InvalidPattern` where none does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc
import re2

from broker_core.errors import InvalidPattern
from broker_core.immutable.sealed import Sealed, seal_fields
from broker_core.memory.bounded_cache import BoundedCache
from broker_core.names import DOMAINS, TopicName
from broker_core.patterns.compile_cost import MAX_UNICODE_CLASSES, estimated_instructions, unicode_classes
from broker_core.patterns.malformation import malformation
from broker_core.patterns.shape import Shape, plain_shape, read_shape
from broker_core.patterns.tokens import close_quote, has_any_byte

__all__ = ["MAX_LENGTH", "TopicsPattern", "compile_pattern"]

#: Default for the longest pattern that is compiled, in UTF-16 code units with its scheme (Java's ``String.length``).
MAX_LENGTH: Final = 1024

# What RE2 may spend on compiling, in bytes: 32,000 instructions, of which it keeps fewer. google-re2 holds the
# interpreter's lock meanwhile: it gives up on `(\pL|\pN){300}` (400,000 instructions) after 2 ms.
_MAX_MEMORY: Final = 384 * 1024
# Of a program that is known to be small: with more memory the range that it can match is found for more patterns.
_MEMORY_FOR_RANGE: Final = 2 * 1024 * 1024
# Instructions of a compiled program. `(.*){1000}` has 10,000; from about 17,000 on RE2's automaton does not fit into
# its memory, and RE2 turns to a way of matching that is a hundred times slower.
_MAX_PROGRAM: Final = 12_000
# Instructions that are compiled and looked at in about a millisecond, all alternatives of a pattern together.
_QUICK_INSTRUCTIONS: Final = 1000
_QUICK_LENGTH: Final = 256  # characters: to estimate more than that takes time itself
_REMEMBERED_BYTES: Final = 16 * 1024 * 1024
_RANGE_LENGTH: Final = 512
_BEHIND_ALL: Final = b"\xff"  # sorts behind every UTF-8 text
_BEFORE_ALL: Final = b"\x01"  # and this before every name, which has no NUL
_LAST_CHARACTER: Final = "\U0010ffff".encode()
_ONE_NAME: Final = pa.array([""], pa.large_string())  # over no name at all, Arrow compiles nothing


def _options(memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    return options


_OPTIONS: Final = _options(_MAX_MEMORY)
_OPTIONS_FOR_RANGE: Final = _options(_MEMORY_FOR_RANGE)


@final
# Weak references: objects of another class are laid out otherwise then, so that none can be given this class.
@dataclass(frozen=True, slots=True, weakref_slot=True, init=False, repr=False)
class TopicsPattern(Sealed):
    """One compiled pattern, of :func:`compile_pattern`; immutable.

    ``raw`` is what the client sent, ``text`` the same without its scheme. ``supported`` is false where RE2 cannot run
    it (``reason`` says why); nothing else is known of it then. ``literal`` is the one matched form
    (``tenant/ns/topic``) that can match, ``ranges`` are half-open ``[low, high)`` bounds of the matched form in UTF-8
    order, sorted and disjoint, outside of which nothing matches (empty: anything may), ``required`` substrings of
    every match, longest first. ``exact_range`` says that all of the only range (of everything, where there is none)
    matches, unless it has a newline. ``program_size`` counts RE2's instructions: what matching may cost.

    What matches it is remembered by its text, and believed: so nobody else can make one, or write to one.
    """

    raw: str
    text: str
    reason: str | None
    literal: str | None
    ranges: tuple[tuple[bytes, bytes], ...]
    exact_range: bool
    required: tuple[str, ...]
    match_all: bool
    #: The text that both engines run: anchored at both ends. Empty where unsupported.
    anchored: str
    program_size: int
    #: How a listing is narrowed: ``all``, ``literal``, ``range``, ``scan``, or ``unsupported``.
    plan: str = field(compare=False)

    @staticmethod
    def without_scheme(raw: str) -> str:
        """What is matched of a pattern as a client sends it: ``text``, without compiling it.

        Raises :exc:`InvalidPattern` where the scheme is none of Pulsar's.
        """
        return strip_scheme(raw)

    @property
    def supported(self) -> bool:
        return self.reason is None

    def match_column(self, matched: pa.LargeStringArray) -> pa.BooleanArray:
        """Which matched forms (``tenant/namespace/topic`` without partition suffix) match in full.

        Raises :exc:`InvalidPattern` where the pattern is not supported.
        """
        if self.match_all:
            return pc.is_valid(matched)
        if not self.supported:
            raise InvalidPattern(f"Unsupported topics pattern {_shown(self.raw)}: {self.reason}")
        return pc.match_substring_regex(matched, self.anchored)

    def matches(self, name: str) -> bool:
        """Whether one full topic name matches."""
        topic = TopicName.parse(name).partitioned_name
        if self.match_all:
            return True
        form = pa.array([f"{topic.namespace}/{topic.local}"], pa.large_string())
        return bool(self.match_column(form)[0].as_py())

    def shortened(self, length: int) -> TopicsPattern:
        """One with the begin of its text alone, which nothing can be matched by: for who is told of it."""
        text = self.raw[:length]
        return _pattern(text, text, reason=self.reason or "it is cut short")

    def __repr__(self) -> str:
        return f"<TopicsPattern {_shown(self.raw)}: {self.plan}>"


_setters: Final = seal_fields(TopicsPattern)


def _pattern(
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
    """The same, if :func:`compile_pattern` made it: what matches it is believed. Raises :exc:`TypeError`."""
    if type(pattern) is not TopicsPattern or not hasattr(pattern, "plan"):
        raise TypeError(
            f"a pattern is what broker_core.patterns.compile_pattern(text) gives, not a {type(pattern).__name__}"
        )
    return pattern


_remembered: Final[BoundedCache[str, TopicsPattern]] = BoundedCache(_REMEMBERED_BYTES)


def compile_pattern(raw: str, *, max_length: int = MAX_LENGTH, remember: bool = True) -> TopicsPattern:
    """Compile a topics pattern as a client sends it; the last ones are remembered, if ``remember`` says so.

    ``max_length`` counts UTF-16 code units of ``raw``; what is longer is never compiled and so unsupported. Raises
    :exc:`InvalidPattern` for what is no regular expression in any dialect, for ``\\C`` and for an unknown scheme.

    It takes up to 20 ms, most of them with the interpreter's lock: a server asks :func:`compile_now` first.
    """
    raw = str.__str__(raw)  # of a kind of string, its characters: what it says of itself may change
    known = _too_long(raw, max_length) or (_remembered.get(raw) if remember else None)
    if known is not None:
        return known
    text = strip_scheme(raw)
    return _keep(_plain(raw, text) or _compile(raw, text), remember=remember)


def compile_now(
    raw: str, *, max_length: int = MAX_LENGTH, has_time: Callable[[], bool] = lambda: True
) -> TopicsPattern | None:
    """The compiled pattern if that takes about a millisecond at the most, else ``None``: see :func:`compile_pattern`.

    That is so where it is remembered, where nothing has to be compiled (literal text with or without ``.*`` behind it)
    and, if ``has_time`` says that there is time for it, where the text itself tells that the program is small.
    """
    raw = str.__str__(raw)
    known = _too_long(raw, max_length) or _remembered.get(raw)
    if known is not None:
        return known
    text = strip_scheme(raw)
    pattern = _plain(raw, text)
    if pattern is None and has_time() and _is_quick(text):
        pattern = _compile(raw, text)
    return None if pattern is None else _keep(pattern)


def _too_long(raw: str, max_length: int) -> TopicsPattern | None:
    try:
        length = len(raw.encode("utf-16-le")) // 2
    except UnicodeEncodeError:
        raise InvalidPattern(f"Invalid topics pattern {_shown(raw)}: it is not valid Unicode") from None
    if length <= max_length:
        return None
    # Not looked at, whatever its scheme: the length counts first, as at a broker.
    # docs/reference/pulsar-behaviour.md#the-order-of-a-brokers-steps
    return _pattern(raw, raw, reason=f"longer than the maximum of {max_length}")


def _keep(pattern: TopicsPattern, *, remember: bool = True) -> TopicsPattern:
    if not remember:
        return pattern
    texts = len(pattern.anchored) + sum(map(len, pattern.required))
    bounds = sum(len(low) + len(high) for low, high in pattern.ranges)
    # Of two who compiled it at once, one.
    return _remembered.put_first(pattern.raw, pattern, 4 * (texts + len(pattern.raw)) + bounds)


def _is_quick(text: str) -> bool:
    if len(text) > _QUICK_LENGTH:
        return False
    return estimated_instructions(text) * (1 + text.count("|")) <= _QUICK_INSTRUCTIONS


def _plain(raw: str, text: str) -> TopicsPattern | None:
    """A pattern of literal text with or without "anything" behind it, which nobody has to compile."""
    if text == ".*":
        return _pattern(raw, text, match_all=True, anchored=r"(?s)\A.*\z")
    shape = plain_shape(text)
    return None if shape is None else _planned(raw, text, shape, len(text) + 2)


def _compile(raw: str, text: str) -> TopicsPattern:
    try:
        if unicode_classes(text) > MAX_UNICODE_CLASSES:
            reason = f"it names more than {MAX_UNICODE_CLASSES} Unicode classes"
            return _unsupported(raw, text, reason)
        # The raw text first: wrapped, `x)|(?:.*` would turn into a pattern that is fine, and another one.
        size = re2.compile(text, _OPTIONS).programsize
        if has_any_byte(text):
            raise InvalidPattern(
                f"Invalid topics pattern {_shown(raw)}: \\C is not allowed, it matches single bytes"
            )
        if size > _MAX_PROGRAM:
            return _pattern(raw, text, reason=f"its program is larger than {_MAX_PROGRAM} instructions")
        pc.match_substring_regex(_ONE_NAME, _anchored(text))
        return _planned(raw, text, read_shape(text), size)
    except (re2.error, pa.ArrowInvalid) as error:
        message = error.args[0] if error.args else ""
        if isinstance(message, bytes):
            message = message.decode(errors="replace")
        return _unsupported(raw, text, f"RE2 refuses it: {_cut(str(message))}")
    finally:
        re2.purge()  # it would keep the last 128 engines, megabytes each, which nobody needs again


def _anchored(text: str) -> str:
    return rf"\A(?:{close_quote(text)})\z"


def _unsupported(raw: str, text: str, reason: str) -> TopicsPattern:
    """What is not compiled may be another dialect's, unless it is broken in each."""
    why = malformation(text)
    if why is not None:
        raise InvalidPattern(f"Invalid topics pattern {_shown(raw)}: {why}") from None
    return _pattern(raw, text, reason=reason)


def _planned(raw: str, text: str, shape: Shape, size: int) -> TopicsPattern:
    anchored = _anchored(text)
    if shape.literal is not None:
        low = shape.literal.encode()
        return _pattern(
            raw,
            text,
            literal=shape.literal,
            ranges=((low, low + b"\0"),),
            required=shape.required,
            anchored=anchored,
            program_size=size,
        )
    prefix = (shape.prefix or "").encode()
    ranges: tuple[tuple[bytes, bytes], ...] = ((prefix, prefix + _BEHIND_ALL),) if prefix else ()
    # RE2 finds its range behind the literal start of a pattern, as if no character were before it: that does not hold
    # for `ab\B.`, of which it leaves out all but `ab`. (Wrongly at the start of the text, `^` only gives more.)
    if not shape.any_tail and not shape.asserts:
        ranges = _ranges(anchored, shape, size) or ranges
    return _pattern(
        raw,
        text,
        ranges=ranges,
        exact_range=shape.any_tail,
        required=shape.required,
        anchored=anchored,
        program_size=size,
    )


def _ranges(anchored: str, shape: Shape, size: int) -> tuple[tuple[bytes, bytes], ...]:
    """The bounds of the alternatives where there are some, else of the whole pattern."""
    if shape.alternatives and size * len(shape.alternatives) <= _MAX_PROGRAM:
        try:
            return _merged([_range(_anchored(part)) for part in shape.alternatives])
        except re2.error:
            pass  # a part that does not stand alone: the bounds of the whole pattern hold too
    return _merged([_range(anchored)])


def _range(anchored: str) -> tuple[bytes, bytes] | None:
    """The half-open bounds of what an anchored pattern can match, or ``None`` where RE2 gives none."""
    engine = re2.compile(anchored, _OPTIONS_FOR_RANGE)
    try:
        low, high = engine.possiblematchrange(_RANGE_LENGTH)
    except re2.error:
        return None
    if low <= _BEFORE_ALL and high >= _LAST_CHARACTER:
        return None
    return bytes(low), bytes(high) + b"\0"


def _merged(ranges: list[tuple[bytes, bytes] | None]) -> tuple[tuple[bytes, bytes], ...]:
    """Sorted, disjoint bounds; empty where one of them is unbounded, and so all of them together are."""
    merged: list[tuple[bytes, bytes]] = []
    for bounds in sorted(bounds for bounds in ranges if bounds is not None):
        if merged and bounds[0] <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], bounds[1]))
        else:
            merged.append(bounds)
    return () if None in ranges else tuple(merged)


def strip_scheme(raw: str) -> str:
    """A pattern without its scheme, by the broker's own rule (docs/reference/pulsar-behaviour.md#topics-patterns).

    The text before the first ``://`` must end in a domain; what is in front of the domain (``^``, say) is kept, what is
    behind a second ``://`` is lost. Raises :exc:`InvalidPattern` for any other scheme.
    """
    head, separator, rest = raw.partition("://")
    if not separator:
        return raw
    rest = rest.partition("://")[0]
    for domain in sorted(DOMAINS, key=len, reverse=True):
        if head.endswith(domain):
            return head[: -len(domain)] + rest
    raise InvalidPattern(f"Invalid topics pattern {_shown(raw)}: Does not support topic domain: {_cut(head)}")


def _cut(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"


def _shown(raw: str) -> str:
    return repr(_cut(raw))
