"""The findings of `broker-core check`, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["LEVELS", "Check"]

LEVELS: Final = ("ok", "warning", "error")


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of a check: its ``level``, the ``name`` of a setting or a part, and a text about it.

    ``error``: the server would not start or not do its work. ``warning``: it would, but an operator should know.
    """

    level: Literal["ok", "warning", "error"]
    name: str
    text: str

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"the level of a check is one of {', '.join(LEVELS)}, not {self.level!r}")

    @classmethod
    def ok(cls, name: str, text: str) -> Check:
        """A finding that all is well; the text says what was found."""
        return cls("ok", name, text)

    @classmethod
    def warning(cls, name: str, text: str) -> Check:
        """A finding of something that works but that an operator should know; the text says what to change."""
        return cls("warning", name, text)

    @classmethod
    def error(cls, name: str, text: str) -> Check:
        """A finding of something that does not work; the text says what to change."""
        return cls("error", name, text)
