"""Namespaces, and patterns of namespaces, as settings have them."""

from __future__ import annotations

__all__ = ["kafka_namespace", "namespace_patterns", "namespace_text"]


def namespace_text(text: str, *, example: str = "acme/*") -> str:
    """A text with a tenant and a namespace. Raises :exc:`ValueError` for any other."""
    if text.count("/") != 1 or not all(text.split("/")):
        raise ValueError(f"{text!r} is not TENANT/NAMESPACE, such as {example!r}")
    return text


def kafka_namespace(text: str) -> str:
    """A namespace of Kafka clients. Raises :exc:`ValueError`."""
    return namespace_text(text, example="public/default")


def namespace_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Patterns of namespaces; ``*`` is every namespace. Raises :exc:`ValueError`."""
    for pattern in patterns:
        if pattern != "*":
            try:
                namespace_text(pattern)
            except ValueError as error:
                raise ValueError(f"{error}, nor '*' for all") from None
    return patterns
