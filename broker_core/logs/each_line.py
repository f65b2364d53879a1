"""Many lines that differ in one field: logged by one call, with all values of the field.

The log of a server renders them together. Any other configuration of structlog gets an event for each line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import structlog

__all__ = ["EACH", "EachLine", "info_each"]

#: The key under which an event has its :class:`EachLine`.
EACH: Final = "each_line"


class EachLine(NamedTuple):
    """The name of the field and its values; it stands in the event at the field's place."""

    field: str
    values: Sequence[str]


def info_each(log: Any, event: str, each: EachLine, **fields: object) -> None:
    """Log ``event`` for each of the values; ``fields`` have a place for them.

    ``log`` is bound: structlog's configuration decides what it does with an event.
    """
    if getattr(structlog.get_config()["processors"][-1], "takes_each_line", False):
        log.info(event, **fields, **{EACH: each})
        return
    for value in each.values:
        log.info(event, **{**fields, each.field: value})
