"""Authentication: the principal of a client by its credentials; one for all transports."""

from __future__ import annotations

from broker_core.access.authentication.authenticator import AskPlugins, Authenticator, Grounds
from broker_core.access.authentication.failures import (
    FAILED,
    REASONS,
    AuthenticationFailed,
    AuthenticationUnusable,
    InvalidRoles,
    bad_password,
    unusable_reason,
)

__all__ = [
    "FAILED",
    "REASONS",
    "AskPlugins",
    "AuthenticationFailed",
    "AuthenticationUnusable",
    "Authenticator",
    "Grounds",
    "InvalidRoles",
    "bad_password",
    "unusable_reason",
]
