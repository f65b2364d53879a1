"""The scheme of a topics pattern, which is removed before matching: ``persistent://`` or ``non-persistent://``."""

from __future__ import annotations

from broker_core.errors import InvalidPattern
from broker_core.names import DOMAINS
from broker_core.redaction import cut_short, quoted

__all__ = ["strip_scheme"]


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
