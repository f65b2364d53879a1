"""What is wrong with a setting, in one line that names the file, the variable or the option, and the key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from broker_core.errors import BrokerCoreError
from broker_core.redaction.credentials import without_credentials

__all__ = [
    "SettingPath",
    "SettingsError",
    "dotted",
    "findings",
    "known_keys",
    "nearest",
    "table_model",
    "what_is_wrong",
]

#: Tables and key of one setting: ``("pulsar", "listen")``.
SettingPath: TypeAlias = tuple[str, ...]


class SettingsError(BrokerCoreError):
    """A setting is unknown or wrong, or the settings file cannot be read. The message is one line.

    ``layer`` says which layer gave a wrong value, where one did: ``"file"``, ``"env"`` or ``"option"``.
    """

    def __init__(self, message: str, *, layer: str | None = None) -> None:
        super().__init__(message)
        self.layer = layer


def dotted(path: Iterable[object]) -> str:
    """``("pulsar", "listen")`` is ``pulsar.listen``."""
    return ".".join(str(part) for part in path)


def table_model(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    """The model of the table ``key`` inside of ``model``, or ``None`` where the key holds a value."""
    annotation = model.model_fields[key].annotation
    for candidate in getattr(annotation, "__args__", (annotation,)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def known_keys(model: type[BaseModel]) -> Mapping[SettingPath, type[BaseModel] | None]:
    """Every path of tables and keys below ``model``, and the model of those that are tables."""
    known: dict[SettingPath, type[BaseModel] | None] = {}
    for key in model.model_fields:
        table = table_model(model, key)
        known[(key,)] = table
        if table is not None:
            known.update({(key, *path): below for path, below in known_keys(table).items()})
    return known


def nearest(path: SettingPath, model: type[BaseModel], *, leaves: bool = False) -> SettingPath:
    """The known key that an unknown ``path`` most likely means; with ``leaves`` never a table.

    What is spelled alike in the same table counts first, then the same key of another table (``[pulsar] path``), then
    what is spelled alike anywhere.
    """
    known = [candidate for candidate, table in known_keys(model).items() if table is None or not leaves]
    beside = {candidate[-1]: candidate for candidate in known if candidate[:-1] == path[:-1]}
    alike = difflib.get_close_matches(path[-1], beside, n=1, cutoff=0.6)
    if alike:
        return beside[alike[0]]
    elsewhere = [candidate for candidate in known if len(candidate) > 1 and candidate[-1] == path[-1]]
    if len(elsewhere) == 1:
        return elsewhere[0]
    spelled = {dotted(candidate): candidate for candidate in known}
    return spelled[difflib.get_close_matches(dotted(path), spelled, n=1, cutoff=0.0)[0]]


def what_is_wrong(error: ErrorDetails) -> str:
    """One finding of pydantic in words, without its prefixes and links, and without passwords in URLs."""
    reason = error.get("ctx", {}).get("error")
    if isinstance(reason, Exception):
        said = str(reason)
    elif error["type"] == "missing":
        said = "it must be set"
    else:
        # TOML has lists only, whatever holds them here.
        message = error["msg"].replace("a valid tuple", "a list")
        said = f"{error['input']!r}: {message[:1].lower()}{message[1:]}"
    return without_credentials(said)


def findings(error: ValidationError) -> list[tuple[SettingPath, ErrorDetails]]:
    """What pydantic found, each with the path of the setting (positions inside of a list are left out)."""
    return [
        (tuple(part for part in detail["loc"] if isinstance(part, str)), detail)
        for detail in error.errors(include_url=False)
    ]
