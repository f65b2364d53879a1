"""Number of random examples that a property is tried with: a fifth of it in a run of units, which is of each commit."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

__all__ = ["examples", "load_profile"]

#: Of a property that has no number of its own: each run draws others, and each build has a run.
_USUAL: Final = 25
_PROFILE: Final = "broker-core"
_OF_UNITS: Final = "broker-core-units"

# A slow machine is no failure of a property.
settings.register_profile(_PROFILE, deadline=None, max_examples=_USUAL)
settings.register_profile(_OF_UNITS, deadline=None, max_examples=_USUAL // 5)


def load_profile(*, units: bool) -> None:
    """Decide for a run of units or for a whole one, before modules of tests are imported."""
    settings.load_profile(_OF_UNITS if units else _PROFILE)


def examples(count: int) -> int:
    """Number of examples of a property that is tried with ``count`` of them in a whole run."""
    return max(1, count * settings().max_examples // _USUAL)
