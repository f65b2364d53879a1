"""The needs of each SASL mechanism, checked before a server starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker_core.errors import BrokerCoreError
from broker_core.settings import KafkaMechanism

__all__ = ["MechanismUnusable", "check_mechanisms"]


class MechanismUnusable(BrokerCoreError):
    """Nobody could ever be authenticated by a mechanism of ``[kafka.sasl]``; the message names the setting."""


def check_mechanisms(
    mechanisms: Iterable[KafkaMechanism], verifies: Callable[[str], bool], *, has_users: bool
) -> None:
    """Raise :exc:`MechanismUnusable` for a mechanism whose credentials nothing verifies.

    ``verifies`` says whether a method of ``[authentication]`` is verified; ``has_users``: there is an embedded
    catalogue, with the users of SCRAM.
    """
    for mechanism in mechanisms:
        missing: str | None = None
        if mechanism == "OAUTHBEARER" and not verifies("token"):
            missing = "it needs 'token' in authentication.methods"
        elif mechanism == "PLAIN" and not has_users and not verifies("basic"):
            missing = "before a Pulsar cluster it needs 'basic' in authentication.methods"
        elif mechanism.startswith("SCRAM") and not has_users:
            missing = "its users are in the embedded catalogue, and before a Pulsar cluster there is none"
        if missing is not None:
            raise MechanismUnusable(f"kafka.sasl.mechanisms: {mechanism!r} cannot be used: {missing}")
