"""The mode of a listing: persistent topics, non-persistent ones, or all."""

from __future__ import annotations

import enum

from broker_core.errors import InvalidName
from broker_core.names.domain import DOMAINS, NON_PERSISTENT, PERSISTENT

__all__ = ["Mode"]


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
