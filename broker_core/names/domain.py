"""The two domains of topics: persistent and non-persistent."""

from __future__ import annotations

from typing import Final

__all__ = ["DOMAINS", "NON_PERSISTENT", "PERSISTENT"]

PERSISTENT: Final = "persistent"
NON_PERSISTENT: Final = "non-persistent"
DOMAINS: Final = (PERSISTENT, NON_PERSISTENT)
