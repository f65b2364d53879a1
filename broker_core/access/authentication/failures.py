"""Failures of authentication: a reason for metrics and logs, and the two errors that clients get."""

from __future__ import annotations

from typing import Final

from broker_core.errors import BrokerCoreError

__all__ = [
    "FAILED",
    "REASONS",
    "AuthenticationFailed",
    "AuthenticationUnusable",
    "InvalidRoles",
    "bad_password",
    "unusable_reason",
]

#: The text for clients, whatever the reason. docs/reference/pulsar-behaviour.md#authentication
FAILED: Final = "Failed to authenticate"
#: The reasons of failures, as the values of a label of metrics.
REASONS: Final = (
    "no_credentials",  # the method is there, the credentials are not
    "unknown_method",
    "bad_token",  # no token, of another key or algorithm, or with claims of a wrong kind
    "expired",
    "not_yet_valid",
    "audience",
    "issuer",
    "no_subject",
    "bad_role",  # the role is not one: too long, or with control characters
    "bad_password",  # also: no such user
    "certificate",  # no verified certificate, or none with a common name
    "plugin",  # a plugin failed, or answered wrongly
    "refused_by_plugins",  # each plugin has passed
    "overloaded",  # too many passwords wait to be verified
    "catalog",  # the users in the catalogue cannot be read
)


class AuthenticationFailed(BrokerCoreError):
    """A client is not authenticated. Every client reads :data:`FAILED`, whatever the reason.

    ``reason`` is one of :data:`REASONS`; ``detail`` says more to the log alone, without any part of the credentials.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


def bad_password() -> AuthenticationFailed:
    """The failure of a user and password, which reveals to nobody whether there is such a user."""
    return AuthenticationFailed("bad_password", "no such user, or another password")


class AuthenticationUnusable(BrokerCoreError):
    """A key or a file of the settings cannot be used. The message names the setting, and shows no secret."""


class InvalidRoles(BrokerCoreError):
    """A client that is authenticated as ``role`` may not act for the principal that it names. ``message`` is the text
    for the client.

    docs/reference/pulsar-behaviour.md#authentication
    """

    def __init__(self, message: str, role: str) -> None:
        super().__init__(message)
        self.message = message
        self.role = role


def unusable_reason(error: OSError | ValueError) -> str:
    """The reason in words why a key or a file cannot be used."""
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
