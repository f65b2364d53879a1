"""Principals of credentials that take waiting to verify, for tests."""

from __future__ import annotations

from broker_core.access.principal import Principal, Verified

__all__ = ["takes_waiting", "waited_for"]


def takes_waiting(made: Verified) -> bool:
    """Whether the verdict is not known at once; a coroutine of it is closed."""
    if isinstance(made, Principal):
        return False
    made.close()
    return True


async def waited_for(made: Verified) -> Principal:
    """The principal of a verdict that takes waiting."""
    assert not isinstance(made, Principal)
    return await made
