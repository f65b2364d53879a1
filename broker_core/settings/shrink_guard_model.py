"""``[shrink_guard]``: how much of a namespace may be missing at once before its listing is held."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from broker_core.quantities import Count, PositiveDuration
from broker_core.settings.authentication_model import OptionalFile
from broker_core.settings.namespace_texts import namespace_patterns
from broker_core.settings.table import Table

__all__ = ["ShrinkGuardNamespace", "ShrinkGuardSettings", "ShrinkLimits"]

_Ratio = Annotated[float, Field(gt=0, le=1)]


class ShrinkLimits(Table):
    """The losses that are held, and for how long."""

    enabled: bool = Field(default=True, description="Whether listings are guarded.")
    max_ratio: _Ratio = Field(
        default=0.5, description="The part of the topics that may be missing at once; what is more is held."
    )
    min_topics: Annotated[Count, Field(ge=1)] = Field(
        default=10, description="Listings of fewer topics are not guarded."
    )
    hold: PositiveDuration = Field(
        default=3600.0,
        description="How long a listing is an error before it passes as it is, unless it is accepted.",
    )


class ShrinkGuardNamespace(Table):
    """``[[shrink_guard.namespaces]]``: other values for some namespaces; what is left out is as in the table above."""

    name: str = Field(
        description="A namespace, such as acme/orders, acme/* for some, or * for all, as in rules."
    )
    enabled: bool | None = Field(default=None, description="As in [shrink_guard].")
    max_ratio: _Ratio | None = Field(default=None, description="As in [shrink_guard].")
    min_topics: Annotated[Count, Field(ge=1)] | None = Field(
        default=None, description="As in [shrink_guard]."
    )
    hold: PositiveDuration | None = Field(default=None, description="As in [shrink_guard].")

    @field_validator("name")
    @classmethod
    def _is_a_pattern(cls, name: str) -> str:
        return namespace_patterns((name,))[0]


class ShrinkGuardSettings(ShrinkLimits):
    """``[shrink_guard]``: listings of a cluster, a plugin or the catalogue that lose many topics at once are held."""

    file: OptionalFile = Field(
        default=None,
        description="Where the sizes of listings are kept over a restart; empty: nowhere.",
    )
    namespaces: tuple[ShrinkGuardNamespace, ...] = Field(
        default=(), description="Other values for some namespaces; the first that fits counts."
    )
