"""The name that the hooks and the entry points of plugins have; without pluggy, for a list of what is installed."""

from __future__ import annotations

from typing import Final

__all__ = ["PROJECT"]

#: The name of the pluggy project and of the entry point group that plugins are found in.
PROJECT: Final = "broker_core"
