"""The part of a topics pattern that RE2 refuses."""

from __future__ import annotations

from dataclasses import dataclass

import re2

from broker_core.pattern_and_replica_bounds import MAX_PATTERN
from broker_core.patterns.malformation import malformed_part
from broker_core.patterns.pattern_compiler import OPTIONS
from broker_core.patterns.pattern_text import PatternToken, TokenKind, tokens
from broker_core.patterns.topics_pattern import strip_scheme
from broker_core.redaction import cut_short

__all__ = ["RefusedPart", "refused_part"]


@dataclass(frozen=True, slots=True)
class RefusedPart:
    """The reason why a pattern is refused, and the place: ``length`` characters from ``offset`` of the pattern as sent.

    Both are ``None`` if no part of it is to blame.
    """

    reason: str
    offset: int | None = None
    length: int | None = None


def refused_part(raw: str) -> RefusedPart | None:
    """The part of a pattern that is refused; ``None`` if RE2 accepts its syntax.

    It takes as long as compiling the pattern. A pattern beyond the longest one is not examined.
    """
    if len(raw) > MAX_PATTERN:
        return None
    head, separator, _ = raw.partition("://")
    try:
        text = strip_scheme(raw)
    except ValueError:
        return RefusedPart("the scheme is no domain of topics", 0, len(head) + len(separator))
    found = _of_text(text)
    if found is None or found.offset is None or not separator:
        return found
    kept = len(text) - len(raw.partition("://")[2].partition("://")[0])  # the length before the domain
    moved = found.offset + (len(head) - kept + len(separator) if found.offset >= kept else 0)
    return RefusedPart(found.reason, moved, found.length)


def _of_text(text: str) -> RefusedPart | None:
    try:
        re2.compile(text, OPTIONS)
        refusal = None
    except re2.error as error:
        refusal = error.args[0] if error.args else ""
    finally:
        re2.purge()
    broken = malformed_part(text)
    if broken is not None:
        return RefusedPart(broken.why, broken.start, broken.end - broken.start)
    if refusal is None:
        return None
    message = refusal.decode(errors="replace") if isinstance(refusal, bytes) else str(refusal)
    _, _, fragment = message.partition(": ")
    reason = cut_short(message)
    start = _start_of(fragment, text) if fragment else None
    return RefusedPart(reason) if start is None else RefusedPart(reason, start, len(fragment))


def _start_of(fragment: str, text: str) -> int | None:
    """The position of the fragment that RE2 complains about: the first one outside of quoted text."""
    for token in tokens(text):
        if token.kind is TokenKind.CLASS:
            found = text.find(fragment, token.start, token.end)
            if found >= 0:
                return found
        elif not _is_plain(token) and text.startswith(fragment, token.start):
            return token.start
    return None


def _is_plain(token: PatternToken) -> bool:
    return token.kind is TokenKind.LITERAL
