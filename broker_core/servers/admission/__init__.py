"""Admission: listening, limits on connections and requests, and the budget of file descriptors."""

from __future__ import annotations

from broker_core.servers.admission.acceptor import Acceptor
from broker_core.servers.admission.connection_limits import (
    ApiAdmission,
    ConnectionLimits,
    ConnectionPlace,
    RequestSlots,
)
from broker_core.servers.admission.file_budget import FileBudget, raise_file_limit

__all__ = [
    "Acceptor",
    "ApiAdmission",
    "ConnectionLimits",
    "ConnectionPlace",
    "FileBudget",
    "RequestSlots",
    "raise_file_limit",
]
