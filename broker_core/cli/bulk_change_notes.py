"""Notes of a bulk change on standard error: that it would be refused, that nothing matched."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_core.guards import Refusal
    from broker_core.names import NamespaceName

__all__ = ["say_ahead", "say_no_match"]


def say_ahead(refusal: Refusal | None) -> None:
    """Print to standard error that the real run would be refused, after a dry run."""
    from broker_core.cli.error_line import say

    if refusal is not None:
        say(refusal.ahead)


def say_no_match(namespace: NamespaceName, pattern: str) -> None:
    """Print to standard error that a pattern selects no topic; it is not a failure, since scripts may expect it."""
    from broker_core.cli.error_line import say

    say(f"no topic of {namespace} matches {pattern!r}; a pattern matches the whole of tenant/namespace/topic")
