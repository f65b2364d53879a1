"""The base of the models of tables: an unknown key is an error, and an instance never changes."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict

__all__ = ["ALL", "SettingConflict", "Table", "each_once"]

#: Each field of a table, for :attr:`Table.live`.
ALL: Final = frozenset({"*"})


class Table(BaseModel):
    """One table of the settings file."""

    # The text of an error may end in a log: it shows no value, which may be a secret.
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True)

    #: The fields that are changed while the server runs (:mod:`broker_core.settings.changed_settings`); others need a
    #: restart.
    live: ClassVar[frozenset[str]] = frozenset()


class SettingConflict(ValueError):
    """Two settings do not go together. ``path`` is the setting that the error names, from the model's table on.

    ``rests_on`` are further tables that the error is about, besides the one with that setting.
    """

    def __init__(
        self, path: tuple[str, ...], message: str, *, rests_on: tuple[tuple[str, ...], ...] = ()
    ) -> None:
        super().__init__(message)
        self.path = path
        self.rests_on = (path[:-1], *rests_on)


def each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of which none is there twice; raises :exc:`ValueError`."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is named twice")
    return names
