"""The authentication of clients of every protocol: checks of credentials in turns, and the ends of credentials."""

from __future__ import annotations

from broker_core.servers.authentication.credential_checks import CredentialChecks
from broker_core.servers.authentication.expiries import Expiries, Expiry

__all__ = ["CredentialChecks", "Expiries", "Expiry"]
