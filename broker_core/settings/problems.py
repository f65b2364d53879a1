"""Problems of settings, in one line that names the file, the variable or the option, and the key."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from broker_core.errors import BrokerCoreError
from broker_core.settings.setting_paths import SettingPath
from broker_core.settings.table import SettingConflict

__all__ = ["SettingsError", "findings", "what_is_wrong"]


class SettingsError(BrokerCoreError):
    """A setting is unknown or wrong, or the settings file cannot be read. The message is one line.

    ``layer`` says which layer gave a wrong value, where one did: ``"file"``, ``"env"`` or ``"option"``.
    """

    def __init__(self, message: str, *, layer: str | None = None) -> None:
        super().__init__(message)
        self.layer = layer


def what_is_wrong(error: ErrorDetails) -> str:
    """One finding of pydantic in words, without its prefixes and links, and without passwords in URLs."""
    from broker_core.redaction.credentials import without_credentials  # many expressions, for errors alone

    reason = error.get("ctx", {}).get("error")
    if isinstance(reason, Exception):
        said = str(reason)
    elif error["type"] == "missing":
        said = "it must be set"
    elif error["type"] == "extra_forbidden":  # in a table of a list: the layers know the others
        said = "unknown setting"
    else:
        # TOML has lists only, whatever holds them here.
        message = error["msg"].replace("a valid tuple", "a list")
        said = f"{error['input']!r}: {message[:1].lower()}{message[1:]}"
    return without_credentials(f"{_where(error)}{said}")


def _where(error: ErrorDetails) -> str:
    """Which table of a list it is, counted from 1; nothing where it is no list of tables."""
    parts = error["loc"]
    for name, position, inner in zip(parts, parts[1:], parts[2:], strict=False):
        if isinstance(name, str) and isinstance(position, int) and isinstance(inner, str):
            return f"number {position + 1} of {name}: "
    return ""


def findings(error: ValidationError) -> list[tuple[SettingPath, ErrorDetails]]:
    """What pydantic found, each with the path of the setting (positions inside of a list are left out)."""
    return [(_path(detail), detail) for detail in error.errors(include_url=False)]


def _path(detail: ErrorDetails) -> SettingPath:
    path = tuple(part for part in detail["loc"] if isinstance(part, str))
    conflict = detail.get("ctx", {}).get("error")
    return (*path, *conflict.path) if isinstance(conflict, SettingConflict) else path
