"""Patterns that can match no topic of a namespace: by their beginning, as if the namespace was forgotten, or by the end
of the only name that they match, which is that of a partition.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from broker_core.errors import InvalidPattern
from broker_core.names import NamespaceName, partitioned_local_name
from broker_core.patterns.pattern_compiler import compile_pattern
from broker_core.patterns.pattern_text import TokenKind, close_quote, tokens
from broker_core.patterns.topics_pattern import TopicsPattern
from broker_core.redaction import quoted

__all__ = ["no_match", "selecting_pattern"]

#: The most instructions of a pattern for which another is proposed: a proposal is compiled too, on the event loop.
_QUICK_PROGRAM: Final = 200
_BEGINNINGS: Final = (None, TokenKind.BEGIN, TokenKind.ALTERNATIVE, TokenKind.OPEN, TokenKind.FLAGS)


def no_match(pattern: TopicsPattern, namespace: NamespaceName) -> str | None:
    """Why ``pattern`` matches no topic that the namespace could ever have, in words; ``None`` if it may match one.

    An unsupported pattern may match.
    """
    if pattern.literal is not None:
        place, slash, local = pattern.literal.rpartition("/")
        topic = partitioned_local_name(local)
        if topic != local:
            return (
                f"the topics pattern {quoted(pattern.raw)} can match no topic of {namespace}: a pattern is matched "
                f"with the names of topics, and gives all of their partitions, such as {quoted(place + slash + topic)}"
            )
    if _may_match(pattern, namespace):
        return None
    is_quick = pattern.program_size <= _QUICK_PROGRAM
    proposed = _proposed(pattern.text, namespace) if is_quick else None
    advice = f"so here it begins with {namespace}/" if proposed is None else f"such as {quoted(proposed)}"
    return (
        f"the topics pattern {quoted(pattern.raw)} can match no topic of {namespace}: "
        f"a pattern matches the whole of tenant/namespace/topic, {advice}"
    )


def selecting_pattern(raw: str, namespace: NamespaceName) -> TopicsPattern:
    """The compiled pattern that selects topics of a namespace for a change.

    Raises :exc:`InvalidPattern`, also if RE2 does not support it, or if it can match no topic of the namespace.
    """
    pattern = compile_pattern(raw)
    if not pattern.supported:
        raise InvalidPattern(f"Unsupported topics pattern {quoted(raw)}: {pattern.reason}")
    wrong = no_match(pattern, namespace)
    if wrong is not None:
        raise InvalidPattern(wrong)
    return pattern


def _may_match(pattern: TopicsPattern, namespace: NamespaceName) -> bool:
    # The range of names with a local name of at least one byte.
    low, high = f"{namespace}/\0".encode(), f"{namespace}0".encode()
    return not pattern.ranges or any(first < high and low < last for first, last in pattern.ranges)


@lru_cache(maxsize=128)
def _proposed(text: str, namespace: NamespaceName) -> str | None:
    """A proposal that may match, if the pattern is one of local names."""
    if not text or "/" in text:
        return None
    local, position = "", 0
    before: TokenKind | None = None
    for token in tokens(text):
        if TokenKind.BEGIN in (token.kind, before) and (
            token.kind is TokenKind.REPEAT or before not in _BEGINNINGS
        ):
            return None  # it matches nothing here, or is repeated, and the text before it would be repeated instead
        if token.kind is TokenKind.BEGIN:
            local += text[position : token.start]
            position = token.end
        before = token.kind
    local = close_quote(local + text[position:])
    proposed = f"{namespace}/(?:{local})" if "|" in local else f"{namespace}/{local}"
    try:
        return proposed if _may_match(compile_pattern(proposed, remember=False), namespace) else None
    except InvalidPattern:
        return None
