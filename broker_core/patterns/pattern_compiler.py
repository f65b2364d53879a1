"""Compiling topics patterns: by RE2 only, in bounded time and memory, and remembered.

Two engines run the same text: google-re2, which compiles and bounds it and gives its range, and Arrow's RE2 kernel,
which runs it over a column. A pattern that RE2 refuses is never given to a backtracking engine; it is *unsupported* if
another dialect may accept it, and an :exc:`InvalidPattern` if none does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import re2

from broker_core.bounds import MAX_PATTERN
from broker_core.errors import InvalidPattern
from broker_core.memory import BoundedCache, make_the_first_array
from broker_core.patterns.compile_cost import MAX_UNICODE_CLASSES, estimated_instructions, unicode_classes
from broker_core.patterns.literals import PatternShape, plain_shape, read_shape
from broker_core.patterns.malformation import malformation
from broker_core.patterns.match_ranges import match_ranges
from broker_core.patterns.re2_options import MAX_PROGRAM, anchored_text, engine_options
from broker_core.patterns.scheme import strip_scheme
from broker_core.patterns.tokens import has_any_byte
from broker_core.patterns.topics_pattern import TopicsPattern, new_pattern
from broker_core.redaction import cut_short, quoted

__all__ = ["MAX_LENGTH", "OPTIONS", "REMEMBERED", "compile_now", "compile_pattern"]

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
_BEHIND_ALL: Final = b"\xff"  # sorts after every UTF-8 text
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
    raw = str.__str__(raw)  # the characters of a subclass of str, whose methods could change their answers
    known = _too_long(raw, max_length) or (REMEMBERED.get(raw) if remember else None)
    if known is not None:
        return known
    text = strip_scheme(raw)
    return _keep(_plain(raw, text) or _compile(raw, text), remember=remember)


def compile_now(raw: str, *, max_length: int, has_time: Callable[[], bool]) -> TopicsPattern | None:
    """The compiled pattern if that takes about a millisecond at most, else ``None``: see :func:`compile_pattern`.

    That is so if it is remembered, if nothing has to be compiled (literal text with or without ``.*`` after it) and, if
    ``has_time()`` is true, if the text itself shows that the program is small.
    """
    raw = str.__str__(raw)
    known = _too_long(raw, max_length) or REMEMBERED.get(raw)
    if known is not None:
        return known
    text = strip_scheme(raw)
    pattern = _plain(raw, text)
    if pattern is None and has_time() and _is_quick(text):
        pattern = _compile(raw, text)
    return None if pattern is None else _keep(pattern)


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
    ranges: tuple[tuple[bytes, bytes], ...] = ((prefix, prefix + _BEHIND_ALL),) if prefix else ()
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
