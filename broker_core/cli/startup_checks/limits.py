"""Settings of limits that are valid alone, and not together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["CLIENTS_WAIT", "limit_checks"]

#: Seconds that clients wait for the answer to a lookup (operationTimeoutMs of Java, reference of each client).
CLIENTS_WAIT: Final = 30.0


def limit_checks(settings: Settings) -> list[Check]:
    """Findings about settings that are valid alone, and not together."""
    return list(_unfit(settings)) or [Check.ok("limits", "they fit together")]


def _unfit(settings: Settings) -> Iterator[Check]:
    limits, pulsar = settings.limits, settings.pulsar
    if limits.permit_timeout > CLIENTS_WAIT:
        yield Check.warning(
            "limits.permit_timeout",
            f"{limits.permit_timeout:g} s is longer than the {CLIENTS_WAIT:g} s that clients wait for an answer: "
            "they ask again, and nobody reads the first answer",
        )
    if pulsar.write_timeout > limits.permit_timeout:
        yield Check.warning(
            "pulsar.write_timeout",
            f"{pulsar.write_timeout:g} s is longer than limits.permit_timeout ({limits.permit_timeout:g} s): answers "
            "of others give up while one client that reads nothing holds the permits",
        )
    unused = pulsar.unused_max_listing
    if unused is not None:
        yield Check.warning("pulsar.max_listing", unused)
    for quota in settings.quotas:
        if quota.max_wait > CLIENTS_WAIT:
            yield Check.warning(
                f"quotas.{quota.name}",
                f"max_wait {quota.max_wait:g} s is longer than the {CLIENTS_WAIT:g} s that clients wait for an answer, "
                "and is more than the throttle time that Kafka clients are given",
            )
    for name in ("heap_permits", "direct_permits", "snapshots"):
        if not getattr(limits, name):
            yield Check.warning(f"limits.{name}", "0 is no limit: memory grows with what clients ask for")
