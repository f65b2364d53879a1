"""Memory that requests hold: permits, leases, estimates, bounded caches, freeing off the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.memory.allocator import keep_freed_memory
    from broker_core.memory.arrow_without_pandas import keep_pandas_out, let_pandas_in, make_the_first_array
    from broker_core.memory.bounded_cache import BoundedCache, CacheState
    from broker_core.memory.ended_frames import let_go_of_cancelled, own_field
    from broker_core.memory.estimates import Estimate, Estimates
    from broker_core.memory.free_off_loop import MANY, free_with
    from broker_core.memory.mapped_memory import map_of
    from broker_core.memory.permit_budget import Keep, Permit, PermitBudget, whole_count
    from broker_core.memory.permit_errors import PermitError, PermitTimeout, permits_refused
    from broker_core.memory.permits import SMALL_ANSWER, Leases, Permits

__all__ = [
    "MANY",
    "SMALL_ANSWER",
    "BoundedCache",
    "CacheState",
    "Estimate",
    "Estimates",
    "Keep",
    "Leases",
    "Permit",
    "PermitBudget",
    "PermitError",
    "PermitTimeout",
    "Permits",
    "free_with",
    "keep_freed_memory",
    "keep_pandas_out",
    "let_go_of_cancelled",
    "let_pandas_in",
    "make_the_first_array",
    "map_of",
    "own_field",
    "permits_refused",
    "whole_count",
]

# A command that needs a name of it does not wait for all the others.
__getattr__ = lazy_exports(
    __name__,
    {
        "BoundedCache": ".bounded_cache",
        "CacheState": ".bounded_cache",
        "Estimate": ".estimates",
        "Estimates": ".estimates",
        "Keep": ".permit_budget",
        "Leases": ".permits",
        "MANY": ".free_off_loop",
        "Permit": ".permit_budget",
        "PermitBudget": ".permit_budget",
        "PermitError": ".permit_errors",
        "PermitTimeout": ".permit_errors",
        "Permits": ".permits",
        "SMALL_ANSWER": ".permits",
        "free_with": ".free_off_loop",
        "keep_freed_memory": ".allocator",
        "keep_pandas_out": ".arrow_without_pandas",
        "let_go_of_cancelled": ".ended_frames",
        "let_pandas_in": ".arrow_without_pandas",
        "make_the_first_array": ".arrow_without_pandas",
        "map_of": ".mapped_memory",
        "own_field": ".ended_frames",
        "permits_refused": ".permit_errors",
        "whole_count": ".permit_budget",
    },
)
