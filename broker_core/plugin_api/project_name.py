"""The name of plugins' hooks and entry points; without importing pluggy, for lists of installed plugins."""

from __future__ import annotations

from typing import Final

__all__ = ["PROJECT"]

#: The name of the pluggy project and of the entry point group of plugins.
PROJECT: Final = "broker_core"
