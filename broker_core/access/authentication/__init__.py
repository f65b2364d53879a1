"""Authentication: who a client is, by its credentials; one for all transports."""

from __future__ import annotations

from broker_core.access.authentication.authenticator import AskPlugins, Authenticator
from broker_core.access.authentication.failures import REASONS, AuthenticationFailed, InvalidRoles

__all__ = ["REASONS", "AskPlugins", "AuthenticationFailed", "Authenticator", "InvalidRoles"]
