"""Guards against losing many topics at once: of deletions by commands, and of listings that shrink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.guards.mass_deletion_guard import Deletions, Loss, MassDeletion, Refusal
from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.guards.shrink_guard import HELD, HeldListing, ShrinkGuard, file_problem

__all__ = [
    "HELD",
    "Deletions",
    "HeldListing",
    "Loss",
    "MassDeletion",
    "Refusal",
    "ShrinkGuard",
    "file_problem",
]

# Commands that delete topics need no settings.
__getattr__ = lazy_exports(
    __name__, dict.fromkeys(("HELD", "HeldListing", "ShrinkGuard", "file_problem"), ".shrink_guard")
)
