"""What `broker-core check` finds, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["LEVELS", "Check"]

LEVELS: Final = ("ok", "warning", "error")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: ``level``, the ``name`` of a setting or a part, and what there is to say.

    ``error``: the server would not start, or would not do its work. ``warning``: it would, and an operator should know.
    """

    level: Literal["ok", "warning", "error"]
    name: str
    text: str

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"the level of a check is one of {', '.join(LEVELS)}, not {self.level!r}")

    @classmethod
    def ok(cls, name: str, text: str) -> Check:
        """A finding that all is as it should be; the text says what it is."""
        return cls("ok", name, text)

    @classmethod
    def warning(cls, name: str, text: str) -> Check:
        """A finding of what works, and an operator should know; the text says what to change."""
        return cls("warning", name, text)

    @classmethod
    def error(cls, name: str, text: str) -> Check:
        """A finding of what does not work; the text says what to change."""
        return cls("error", name, text)
