"""Number of random examples that a property is tried with: a fifth of it in a run of units, which is of each commit."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

__all__ = ["examples", "load_profile"]

#: Of a property that has no number of its own: each run draws others, and each build has a run.
_USUAL: Final = 50
_UNITS: Final = 10


def load_profile(*, units: bool) -> None:
    """Make the usual number that of a run of units, or of a whole run; before modules of tests are imported."""
    settings.register_profile(
        "broker-core",
        deadline=None,  # a slow machine is no failure of a property
        max_examples=_UNITS if units else _USUAL,
    )
    settings.load_profile("broker-core")


def examples(count: int) -> int:
    """Number of examples of a property that is tried with ``count`` in a whole run."""
    return max(1, count * settings.default.max_examples // _USUAL)
