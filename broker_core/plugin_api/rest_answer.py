"""The answer of the rest of the chain to ``request.rest()``: later plugins, then the default lister."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, Literal

from broker_core.listing import Details, Selection

__all__ = ["SAME", "RestAnswer", "Same"]


class Same(enum.Enum):
    """The type of :data:`SAME`."""

    SAME = "same"

    def __repr__(self) -> str:
        return "SAME"


#: As the client asks: what ``request.rest(pattern=..., properties=...)`` takes to change nothing.
SAME: Final[Literal[Same.SAME]] = Same.SAME


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """The answer of the plugins after a plugin and of the default lister to one question, checked, before any mask.

    ``selection`` are its topics, without topics that do not match the pattern if ``filtered`` is true (it is false
    without a pattern, and for one that the core does not evaluate). ``version`` names the state that was listed, if the
    lister gives one; ``lister`` is the plugin that answered, ``catalog`` or ``upstream``; ``stale_seconds`` the age of
    a former answer in place of a failed one; ``details`` what the lister knows of the topics besides their names.

    It may be kept: a cache keys it by ``request.key(...)``, with the same arguments as the ``request.rest(...)`` that
    gave it.
    """

    selection: Selection
    filtered: bool
    version: str | int | None
    lister: str
    stale_seconds: float | None = None
    details: Details | None = None
