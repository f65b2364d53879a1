"""Compiling topics patterns: by RE2 only, in bounded time and memory, and remembered.

Two engines run the same text: google-re2, which compiles and bounds it and gives its range, and Arrow's RE2 kernel,
which runs it over a column. A pattern that RE2 refuses is never given to a backtracking engine; it is *unsupported* if
another dialect may accept it, and an :exc:`InvalidPattern` if none does.

Before any engine sees a pattern, the cost of compiling it is bounded from its text alone. google-re2 holds the
interpreter's lock while it compiles. Its bound on memory ends the compiling of a program that is too large, but not the
parsing before that: each Unicode class (``\\pL``) expands to hundreds of ranges, and ``(?i)`` folds each of them (0.3
ms a class). So their number has a bound of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import re2

from broker_core.errors import InvalidPattern
from broker_core.memory import BoundedCache, make_the_first_array
from broker_core.pattern_and_replica_bounds import MAX_PATTERN
from broker_core.patterns.malformation import malformation
from broker_core.patterns.pattern_text import (
    PatternShape,
    PatternToken,
    TokenKind,
    close_quote,
    has_any_byte,
    plain_shape,
    read_shape,
    tokens,
)
from broker_core.patterns.topics_pattern import TopicsPattern, new_pattern, strip_scheme
from broker_core.redaction import cut_short, quoted

__all__ = [
    "MAX_LENGTH",
    "MAX_PROGRAM",
    "MAX_UNICODE_CLASSES",
    "OPTIONS",
    "REMEMBERED",
    "anchored_text",
    "compile_now",
    "compile_pattern",
    "engine_options",
    "estimated_instructions",
    "match_ranges",
    "unicode_classes",
]


#: Unicode classes that a pattern may name: 6 ms of parsing at the worst.
MAX_UNICODE_CLASSES: Final = 20

#: The most instructions of one token. A class of letters has 700 to 1,300.
_UNICODE_CLASS: Final = 1500
_CLASS: Final = 60
_ANY: Final = 12
_OTHER: Final = 3
#: Case folding makes classes of characters.
_FOLDED: Final = 4

_ESCAPED_CLASS: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[pP]")
_FEW_BYTES: Final = re.compile(r"\[[\w.-]+\]", re.ASCII)  # [a-f0-9]
_COUNTS: Final = re.compile(r"\d+", re.ASCII)


def unicode_classes(text: str) -> int:
    r"""Number of classes such as ``\pL`` and ``\P{Greek}`` in the text of a pattern."""
    if "\\p" not in text and "\\P" not in text:
        return 0
    return sum(map(_unicode_classes, tokens(text)))


def _unicode_classes(token: PatternToken) -> int:
    if token.kind is TokenKind.CLASS:
        return len(_ESCAPED_CLASS.findall(token.text))
    return 1 if token.kind is TokenKind.ESCAPE and token.text in "pP" else 0


def estimated_instructions(text: str) -> int:
    """A loose upper bound on RE2's instructions for a pattern; meaningless for a pattern that RE2 refuses.

    A repetition counts its operand as often as it may occur. Linear in the length of the text.
    """
    sizes = [0]  # of the open groups, outermost first
    last = 0  # of the operand of a following repetition
    folded = 1
    for token in tokens(text):
        kind = token.kind
        if kind is TokenKind.OPEN:
            folded = _FOLDED if token.text.startswith("(?") and token.text != "(?:" else folded
            sizes.append(_OTHER)
            continue
        if kind is TokenKind.REPEAT:
            times = max(map(int, _COUNTS.findall(token.text)), default=1) + 1
            sizes[-1] += last * (times - 1) + 2 * times
            last = last * times + 2 * times  # a repetition of a repetition repeats all of it
            continue
        if kind is TokenKind.CLOSE and len(sizes) > 1:
            last = sizes.pop() + _OTHER
        elif kind is TokenKind.FLAGS:
            folded = _FOLDED  # a repetition after flags repeats what is before them
            continue
        else:
            last = folded * _instructions(token)
        sizes[-1] += last
    return sum(sizes)


def _instructions(token: PatternToken) -> int:
    if token.kind is TokenKind.LITERAL:
        return len(token.text.encode(errors="replace"))
    if token.kind is TokenKind.ANY:
        return _ANY
    classes = _unicode_classes(token)
    if classes:
        return classes * _UNICODE_CLASS
    if token.kind is TokenKind.CLASS:
        if _FEW_BYTES.fullmatch(token.text):
            return len(token.text) // 2
        return max(_CLASS, 4 * len(token.text))
    return _CLASS // 4


#: Instructions of a compiled program. `(.*){1000}` has 10,000; from about 17,000 on RE2's automaton does not fit into
#: its memory, and RE2 turns to a way of matching that is a hundred times slower.
MAX_PROGRAM: Final = 12_000


def engine_options(memory: int) -> Any:
    """The options of an engine that takes at most so many bytes, and logs nothing."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    return options


def anchored_text(text: str) -> str:
    """The pattern that matches a text if all of it matches ``text``."""
    return rf"\A(?:{close_quote(text)})\z"


# For a program that is known to be small: with more memory the range is found for more patterns.
_MEMORY_FOR_RANGE: Final = 2 * 1024 * 1024
_RANGE_LENGTH: Final = 512
_BEFORE_ALL: Final = b"\x01"  # sorts before every name, which has no NUL
_LAST_CHARACTER: Final = "\U0010ffff".encode()
_OPTIONS_FOR_RANGE: Final = engine_options(_MEMORY_FOR_RANGE)


def match_ranges(anchored: str, shape: PatternShape, size: int) -> tuple[tuple[bytes, bytes], ...]:
    """The bounds of the alternatives if there are some, else of the whole pattern."""
    if shape.alternatives and size * len(shape.alternatives) <= MAX_PROGRAM:
        try:
            return _merged([_range(anchored_text(part)) for part in shape.alternatives])
        except re2.error:
            pass  # a part that is not valid alone: the bounds of the whole pattern hold too
    return _merged([_range(anchored)])


def _range(anchored: str) -> tuple[bytes, bytes] | None:
    """The half-open bounds of an anchored pattern's matches, or ``None`` if RE2 gives none."""
    engine = re2.compile(anchored, _OPTIONS_FOR_RANGE)
    try:
        low, high = engine.possiblematchrange(_RANGE_LENGTH)
    except re2.error:
        return None
    if low <= _BEFORE_ALL and high >= _LAST_CHARACTER:
        return None
    return bytes(low), bytes(high) + b"\0"


def _merged(ranges: list[tuple[bytes, bytes] | None]) -> tuple[tuple[bytes, bytes], ...]:
    """Sorted, disjoint bounds; empty if one of the ranges is unbounded, and so is their union."""
    merged: list[tuple[bytes, bytes]] = []
    for bounds in sorted(bounds for bounds in ranges if bounds is not None):
        if merged and bounds[0] <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], bounds[1]))
        else:
            merged.append(bounds)
    return () if None in ranges else tuple(merged)


#: The longest pattern that is compiled by default; the server uses its settings. In UTF-16
#: code units with its scheme, as Java's ``String.length`` counts.
MAX_LENGTH: Final = MAX_PATTERN
# Bytes that RE2 may spend on compiling: 32,000 instructions, of which it keeps fewer. google-re2 holds the
# interpreter's lock meanwhile: it gives up on `(\pL|\pN){300}` (400,000 instructions) after 2 ms.
_MAX_MEMORY: Final = 384 * 1024
# Instructions that are compiled and analysed in about a millisecond, all alternatives of a pattern together.
_QUICK_INSTRUCTIONS: Final = 1000
_QUICK_LENGTH: Final = 256  # characters: estimating more than that takes time itself
_REMEMBERED_BYTES: Final = 16 * 1024 * 1024
_AFTER_ALL: Final = b"\xff"  # sorts after every UTF-8 text
make_the_first_array()
# One empty name, by two offsets of 0: without any name, Arrow compiles nothing.
_ONE_NAME: Final = pa.LargeStringArray.from_buffers(1, pa.py_buffer(bytes(16)), pa.py_buffer(b""))
OPTIONS: Final = engine_options(_MAX_MEMORY)
#: Compiled patterns of this process.
REMEMBERED: Final[BoundedCache[str, TopicsPattern]] = BoundedCache(_REMEMBERED_BYTES)


def compile_pattern(raw: str, *, max_length: int = MAX_LENGTH, remember: bool = True) -> TopicsPattern:
    """Compile a topics pattern as a client sends it; the last ones are remembered, if ``remember`` is set.

    ``max_length`` counts UTF-16 code units of ``raw``; a longer pattern is never compiled and so unsupported. Raises
    :exc:`InvalidPattern` for a text that is not a regular expression in any dialect, for ``\\C`` and for an unknown
    scheme.

    It takes up to 20 ms, most of them with the interpreter's lock: a server tries :func:`compile_now` first.
    """
    pattern = _known_or_compiled(raw, max_length, None, remember=remember)
    assert pattern is not None
    return pattern


def compile_now(raw: str, *, max_length: int, has_time: Callable[[], bool]) -> TopicsPattern | None:
    """The compiled pattern if that takes about a millisecond at most, else ``None``: see :func:`compile_pattern`.

    That is so if it is remembered, if nothing has to be compiled (literal text with or without ``.*`` after it) and, if
    ``has_time()`` is true, if the text itself shows that the program is small.
    """
    return _known_or_compiled(raw, max_length, has_time)


def _known_or_compiled(
    raw: str, max_length: int, has_time: Callable[[], bool] | None, *, remember: bool = True
) -> TopicsPattern | None:
    """The pattern; ``None`` if it has to be compiled, and ``has_time`` is given and that may take long."""
    raw = str.__str__(raw)  # the characters of a subclass of str, whose methods could change their answers
    known = _too_long(raw, max_length) or (REMEMBERED.get(raw) if remember else None)
    if known is not None:
        return known
    text = strip_scheme(raw)
    pattern = _plain(raw, text)
    if pattern is None and (has_time is None or (has_time() and _is_quick(text))):
        pattern = _compile(raw, text)
    return None if pattern is None else _keep(pattern, remember=remember)


def _too_long(raw: str, max_length: int) -> TopicsPattern | None:
    try:
        length = len(raw) if raw.isascii() else len(raw.encode("utf-16-le")) // 2
    except UnicodeEncodeError:
        raise InvalidPattern(f"Invalid topics pattern {quoted(raw)}: it is not valid Unicode") from None
    if length <= max_length:
        return None
    # Not parsed, whatever its scheme: the length counts first, as at a broker.
    # docs/reference/pulsar-behaviour.md#the-order-of-a-brokers-steps
    return new_pattern(raw, raw, reason=f"longer than the maximum of {max_length}")


def _keep(pattern: TopicsPattern, *, remember: bool = True) -> TopicsPattern:
    if not remember:
        return pattern
    texts = len(pattern.anchored) + sum(map(len, pattern.required))
    bounds = sum(len(low) + len(high) for low, high in pattern.ranges)
    # Two threads may have compiled it at once: one result stays.
    return REMEMBERED.put_first(pattern.raw, pattern, 4 * (texts + len(pattern.raw)) + bounds)


def _is_quick(text: str) -> bool:
    if len(text) > _QUICK_LENGTH:
        return False
    return estimated_instructions(text) * (1 + text.count("|")) <= _QUICK_INSTRUCTIONS


def _plain(raw: str, text: str) -> TopicsPattern | None:
    """A pattern of literal text, with or without ``.*`` after it: known without compiling."""
    if text == ".*":
        return new_pattern(raw, text, match_all=True, anchored=r"(?s)\A.*\z")
    shape = plain_shape(text)
    return None if shape is None else _of_shape(raw, text, shape, len(text) + 2)


def _compile(raw: str, text: str) -> TopicsPattern:
    try:
        if unicode_classes(text) > MAX_UNICODE_CLASSES:
            reason = f"it names more than {MAX_UNICODE_CLASSES} Unicode classes"
            return _unsupported(raw, text, reason)
        # The raw text first: wrapped, `x)|(?:.*` would turn into a valid, but different pattern.
        size = re2.compile(text, OPTIONS).programsize
        if has_any_byte(text):
            raise InvalidPattern(
                f"Invalid topics pattern {quoted(raw)}: \\C is not allowed, it matches single bytes"
            )
        if size > MAX_PROGRAM:
            return new_pattern(raw, text, reason=f"its program is larger than {MAX_PROGRAM} instructions")
        pc.match_substring_regex(_ONE_NAME, anchored_text(text))
        return _of_shape(raw, text, read_shape(text), size)
    except (re2.error, pa.ArrowInvalid) as error:
        message = error.args[0] if error.args else ""
        if isinstance(message, bytes):
            message = message.decode(errors="replace")
        return _unsupported(raw, text, f"RE2 refuses it: {cut_short(str(message))}")
    finally:
        re2.purge()  # it would keep the last 128 engines, megabytes each, which are not used again


def _unsupported(raw: str, text: str, reason: str) -> TopicsPattern:
    """A pattern that is not compiled: unsupported, or invalid if it is broken in every dialect."""
    why = malformation(text)
    if why is not None:
        raise InvalidPattern(f"Invalid topics pattern {quoted(raw)}: {why}") from None
    return new_pattern(raw, text, reason=reason)


def _of_shape(raw: str, text: str, shape: PatternShape, size: int) -> TopicsPattern:
    anchored = anchored_text(text)
    if shape.literal is not None:
        low = shape.literal.encode()
        return new_pattern(
            raw,
            text,
            literal=shape.literal,
            ranges=((low, low + b"\0"),),
            required=shape.required,
            anchored=anchored,
            program_size=size,
        )
    prefix = (shape.prefix or "").encode()
    ranges: tuple[tuple[bytes, bytes], ...] = ((prefix, prefix + _AFTER_ALL),) if prefix else ()
    # RE2 finds its range after the literal start of a pattern, as if no character were before it: that does not hold
    # for `ab\B.`, of which it leaves out all but `ab`. (Wrongly at the start of the text, `^` only gives more.)
    if not shape.any_tail and not shape.asserts:
        ranges = match_ranges(anchored, shape, size) or ranges
    return new_pattern(
        raw,
        text,
        ranges=ranges,
        exact_range=shape.any_tail,
        required=shape.required,
        anchored=anchored,
        program_size=size,
    )
