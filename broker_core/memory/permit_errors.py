"""Why permits were not acquired."""

from __future__ import annotations

from broker_core.errors import BrokerCoreError

__all__ = ["PermitCancelled", "PermitError", "PermitQueueFull", "PermitTimeout", "PermitsClosed"]


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
