"""Patterns that can match no topic of a namespace, by their beginning alone: what a forgotten namespace looks like."""

from __future__ import annotations

from broker_core.names import NamespaceName
from broker_core.patterns.topics_pattern import TopicsPattern
from broker_core.redaction.quoted import quoted

__all__ = ["no_match"]


def no_match(pattern: TopicsPattern, namespace: NamespaceName) -> str | None:
    """Why ``pattern`` matches no topic that the namespace could ever have, in words; ``None`` if it may match one.

    What RE2 does not support may match.
    """
    if not pattern.ranges:
        return None
    # Of a local name of one byte at least.
    low, high = f"{namespace}/\0".encode(), f"{namespace}0".encode()
    if any(first < high and low < last for first, last in pattern.ranges):
        return None
    return (
        f"the topics pattern {quoted(pattern.raw)} can match no topic of {namespace}: "
        f"a pattern matches the whole of tenant/namespace/topic, {_advice(pattern.text, namespace)}"
    )


def _advice(text: str, namespace: NamespaceName) -> str:
    if not text or "/" in text:
        return f"so here it begins with {namespace}/"
    local = text.removeprefix("^")
    return f"such as {quoted(f'{namespace}/(?:{local})' if '|' in local else f'{namespace}/{local}')}"
