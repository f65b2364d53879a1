"""Who gets in: listening, how many connections there may be, and how many file descriptors they leave to the rest."""

from __future__ import annotations

from broker_core.servers.admission.acceptor import Acceptor
from broker_core.servers.admission.connection_limits import Places
from broker_core.servers.admission.file_budget import FileBudget, raise_file_limit

__all__ = ["Acceptor", "FileBudget", "Places", "raise_file_limit"]
