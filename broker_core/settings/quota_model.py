"""``[[quotas]]``: how many requests, and bytes of answers, clients may have per second."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from broker_core.quantities import Count, Duration, PositiveDuration, Size
from broker_core.settings.namespace_texts import namespace_patterns
from broker_core.settings.table import Table
from broker_core.settings.tls_models import Network

__all__ = ["QuotaSettings", "check_quota_names"]

_Patterns: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]


class QuotaSettings(Table):
    """``[[quotas]]``: a bound of what clients ask; of several quotas that match a request, all hold."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = Field(
        description="Its name, for metrics and errors."
    )
    roles: _Patterns = Field(
        default=("*",), description="Roles, such as team-*; * is every client, also one without a role."
    )
    addresses: tuple[Network, ...] = Field(
        default=(), description="Networks of clients, such as 192.0.2.0/24; empty: all."
    )
    namespaces: _Patterns = Field(
        default=("*",),
        description="Namespaces, such as acme/*; * is every request, also one in no namespace.",
    )
    per: tuple[Literal["role", "address", "namespace"], ...] = Field(
        default=("role",),
        description="What has a bucket of its own: each role (a client without one by its address), address or "
        "namespace, or each combination of them; empty: all that match share one.",
    )
    # With less, the wait for the next request is no number that could be reported.
    requests: Annotated[float, Field(ge=1e-6, le=1e9)] | None = Field(
        default=None, description="Requests per second; left out: any number."
    )
    bytes: Annotated[Size, Field(ge=1)] | None = Field(
        default=None, description="Bytes of answers per second; left out: any number."
    )
    burst: PositiveDuration = Field(
        default=5.0,
        description="The most that a bucket holds: the requests and bytes of so long a time, and one request at least.",
    )
    queue: Count = Field(default=100, description="Requests of a bucket that may wait for their turn.")
    max_wait: Duration = Field(
        default=5.0, description="The longest wait of a request; one that would wait longer is refused."
    )

    @field_validator("roles", "namespaces")
    @classmethod
    def _has_texts(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if "" in patterns:
            raise ValueError("a pattern is empty, and matches nothing")
        return patterns

    _have_two_parts = field_validator("namespaces")(namespace_patterns)

    @model_validator(mode="after")
    def _bounds_something(self) -> QuotaSettings:
        if self.requests is None and self.bytes is None:
            raise ValueError(f"quota {self.name!r} bounds nothing: set requests, bytes or both")
        return self


def check_quota_names(quotas: tuple[QuotaSettings, ...]) -> tuple[QuotaSettings, ...]:
    """Check that each quota has a name of its own; raises :exc:`ValueError`."""
    names = [quota.name for quota in quotas]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two quotas are named {name!r}")
    return quotas
