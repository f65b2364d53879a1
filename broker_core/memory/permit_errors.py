"""Errors of permits that were not acquired, and the refusals that clients get for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from broker_core.errors import BrokerCoreError, Cause, TooManyRequests

__all__ = [
    "PermitCancelled",
    "PermitError",
    "PermitQueueFull",
    "PermitTimeout",
    "PermitsClosed",
    "permits_refused",
]

_Memory: TypeAlias = Literal["heap", "direct", "snapshot_memory"]


class PermitError(BrokerCoreError):
    """Permits were not acquired; nothing is held for the failed demand."""


class PermitTimeout(PermitError):
    def __init__(self) -> None:
        super().__init__("Permit acquisition timed out")


class PermitQueueFull(PermitError):
    def __init__(self) -> None:
        super().__init__("Permit acquisition queue is full")


class PermitCancelled(PermitError):
    def __init__(self) -> None:
        super().__init__("Permit acquisition was cancelled")


class PermitsClosed(PermitError):
    def __init__(self) -> None:
        super().__init__("Permit budget is closed")


#: The refusal by the kind of memory that is short, in Pulsar's words if it has some, and the reasons of
#: ``docs/reference/metrics.md#reasons-of-a-refused-listing`` that are not the memory's name.
_REFUSALS: Final[Mapping[_Memory, tuple[str, Mapping[type[PermitError], str]]]] = MappingProxyType(
    {
        "heap": (
            "Failed due to heap memory limit exceeded",
            {PermitTimeout: "heap_timeout", PermitQueueFull: "heap_queue"},
        ),
        "direct": ("Cannot acquire permits for direct memory", {PermitTimeout: "direct_timeout"}),
        "snapshot_memory": ("Failed due to snapshot memory limit exceeded", {}),
    }
)


def permits_refused(memory: _Memory, error: PermitError | None = None) -> TooManyRequests:
    """The refusal of a client for lack of memory; ``error`` says why if permits were waited for."""
    text, reasons = _REFUSALS[memory]
    cause = Cause.QUEUE if isinstance(error, PermitQueueFull) else Cause.PERMITS
    return TooManyRequests(text, reason=reasons.get(type(error), memory) if error else memory, cause=cause)
