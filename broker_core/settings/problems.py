"""Problems of settings, in one line that names the file, the variable or the option, and the key."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from broker_core.errors import BrokerCoreError
from broker_core.settings.setting_paths import SettingPath, row_keys
from broker_core.settings.table import SettingConflict

__all__ = ["Finding", "SettingsError", "findings", "what_is_wrong"]


class SettingsError(BrokerCoreError):
    """A setting is unknown or wrong, or the settings file cannot be read. The message is one line.

    ``layer`` says which layer gave a wrong value, if one did: ``"file"``, ``"env"`` or ``"option"``.
    """

    def __init__(self, message: str, *, layer: str | None = None) -> None:
        super().__init__(message)
        self.layer = layer


def what_is_wrong(error: ErrorDetails) -> str:
    """One finding of pydantic in words, without its prefixes and links, and without passwords in URLs."""
    from broker_core.redaction import without_credentials  # many expressions, for errors alone

    reason = error.get("ctx", {}).get("error")
    if isinstance(reason, Exception):
        said = str(reason)
    elif error["type"] == "missing":
        said = "it must be set"
    elif error["type"] == "extra_forbidden":  # in a table of a list: the layers know the others
        meant = _meant(error)
        said = "unknown setting" + (f", did you mean {meant!r}?" if meant else "")
    elif error["type"] in ("model_type", "model_attributes_type", "dict_type"):
        said = f"{error['input']!r}: it is a table: `[NAME]`, or `[[NAME]]` of a list, and its settings below"
    elif error["type"] == "too_short":
        said = f"it is empty, and needs at least one {_path(error)[-1].removesuffix('s')}"
    else:
        # TOML has lists only, whatever holds them here.
        message = error["msg"].replace("a valid tuple", "a list")
        said = f"{error['input']!r}: {message[:1].lower()}{message[1:]}"
    return without_credentials(said)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that pydantic found.

    ``path`` is the path of the setting, without positions inside of a list; ``numbered`` is the path with the number,
    from 1 on, of a table in a list: ``rules[2]``. ``rests_on`` are the tables that a conflict of settings is about; a
    finding about a value alone has none.
    """

    path: SettingPath
    numbered: SettingPath
    detail: ErrorDetails
    rests_on: tuple[SettingPath, ...] = ()

    def is_about(self, path: SettingPath) -> bool:
        """Whether a setting, or a table, is a part of a table that this conflict is about, or contains one."""
        return any(path[: len(table)] == table[: len(path)] for table in self.rests_on)


def findings(error: ValidationError) -> list[Finding]:
    """The findings of pydantic; one that only follows from another is left out."""
    details = error.errors(include_url=False)
    places = {detail["loc"] for detail in details}
    meant = {
        (*detail["loc"][:-1], _meant(detail)) for detail in details if detail["type"] == "extra_forbidden"
    }
    found = []
    for detail in details:
        place = detail["loc"]
        # A list with a wrong element counts as one without the element, and a misspelled key as missing.
        if detail["type"] == "too_short" and any(other[: len(place)] == place != other for other in places):
            continue
        if detail["type"] == "missing" and place in meant:
            continue
        conflict = detail.get("ctx", {}).get("error")
        above = tuple(part for part in place if isinstance(part, str))
        rests_on = conflict.rests_on if isinstance(conflict, SettingConflict) else ()
        found.append(
            Finding(_path(detail), _numbered(detail), detail, tuple((*above, *table) for table in rests_on))
        )
    return found


def _path(detail: ErrorDetails) -> SettingPath:
    path = tuple(part for part in detail["loc"] if isinstance(part, str))
    conflict = detail.get("ctx", {}).get("error")
    return (*path, *conflict.path) if isinstance(conflict, SettingConflict) else path


def _numbered(detail: ErrorDetails) -> SettingPath:
    if not any(isinstance(part, int) for part in detail["loc"]):
        return _path(detail)
    numbered: list[str] = []
    for part, after in zip(detail["loc"], (*detail["loc"][1:], 0), strict=True):
        if isinstance(part, str):
            numbered.append(part)
        elif isinstance(after, str):  # an element of another list is shown itself
            numbered[-1] += f"[{part + 1}]"
    return tuple(numbered)


def _meant(detail: ErrorDetails) -> str | None:
    """The setting that an unknown key of a table in a list most likely means."""
    *above, key = _path(detail)
    alike = difflib.get_close_matches(key, row_keys(tuple(above)), n=1, cutoff=0.6)
    return alike[0] if alike else None
