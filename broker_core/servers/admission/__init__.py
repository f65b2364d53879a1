"""Who gets in: listening, how many connections and requests there may be, and the file descriptors for the rest."""

from __future__ import annotations

from broker_core.servers.admission.acceptor import Acceptor
from broker_core.servers.admission.connection_limits import ConnectionLimits
from broker_core.servers.admission.file_budget import FileBudget, raise_file_limit
from broker_core.servers.admission.request_slots import RequestSlots

__all__ = ["Acceptor", "ConnectionLimits", "FileBudget", "RequestSlots", "raise_file_limit"]
