"""The mode of a listing: topics of one of the two domains, persistent and non-persistent, or all."""

from __future__ import annotations

import enum
from typing import Final

from broker_core.errors import InvalidName

__all__ = ["DOMAINS", "NON_PERSISTENT", "PERSISTENT", "Mode"]


PERSISTENT: Final = "persistent"
NON_PERSISTENT: Final = "non-persistent"
DOMAINS: Final = (PERSISTENT, NON_PERSISTENT)


class Mode(enum.IntEnum):
    """The domains that a listing has; the numbers are those of ``CommandGetTopicsOfNamespace.Mode``."""

    PERSISTENT = 0
    NON_PERSISTENT = 1
    ALL = 2

    @classmethod
    def parse(cls, text: str) -> Mode:
        """``"persistent"``, ``"NON_PERSISTENT"``, ``"all"`` ... ; anything else is an :exc:`InvalidName`."""
        try:
            return cls[text.strip().upper().replace("-", "_")]
        except KeyError:
            raise InvalidName(f"Invalid mode {text!r}: one of persistent, non-persistent, all") from None

    def lists(self, domain: str) -> bool:
        """Whether a listing of this mode has topics of a domain."""
        if self is Mode.ALL:
            return domain in DOMAINS
        return domain == (PERSISTENT if self is Mode.PERSISTENT else NON_PERSISTENT)
