"""The paths of all settings, and the setting that an unknown name most likely means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

from pydantic import BaseModel

from broker_core.settings.key_source import KeySource
from broker_core.settings.models import Settings

__all__ = [
    "FILES",
    "KEY_SOURCES",
    "LISTS",
    "SettingPath",
    "dotted",
    "known_keys",
    "nearest",
    "row_keys",
    "table_model",
]

#: Tables and key of one setting: ``("pulsar", "listen")``.
SettingPath: TypeAlias = tuple[str, ...]


def dotted(path: Iterable[object]) -> str:
    """Name of a setting from its path: ``pulsar.listen`` of ``("pulsar", "listen")``."""
    return ".".join(str(part) for part in path)


def table_model(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    """The model of the table ``key`` inside of ``model``, or ``None`` if the key holds a value."""
    annotation = model.model_fields[key].annotation
    if getattr(annotation, "__origin__", None) is tuple:
        return None  # a list, of tables too
    for candidate in getattr(annotation, "__args__", (annotation,)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


@cache
def known_keys(model: type[BaseModel]) -> Mapping[SettingPath, type[BaseModel] | None]:
    """Every path of tables and keys below ``model``, and the models of the tables."""
    known: dict[SettingPath, type[BaseModel] | None] = {}
    for key in model.model_fields:
        table = table_model(model, key)
        known[(key,)] = table
        if table is not None:
            known.update({(key, *path): below for path, below in known_keys(table).items()})
    return known


def row_keys(path: SettingPath) -> tuple[str, ...]:
    """The keys of each table in the list at ``path``; none if it is no list of tables."""
    rows = [kind for kind in get_args(_KINDS.get(path)) if isinstance(kind, type)]
    return tuple(key for row in rows if issubclass(row, BaseModel) for key in row.model_fields)


def nearest(path: SettingPath, model: type[BaseModel], *, leaves: bool = False) -> SettingPath:
    """The known key that an unknown ``path`` most likely means; with ``leaves`` never a table.

    A similar key of the same table counts first, then the same key of another table (``[pulsar] path``), then a similar
    key anywhere.
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


def _kinds(model: type[BaseModel], above: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    """The annotation of each setting, by its path."""
    for key, field in model.model_fields.items():
        table = table_model(model, key)
        if table is None:
            yield (*above, key), field.annotation
        else:
            yield from _kinds(table, (*above, key))


_KINDS: Final = dict(_kinds(Settings))

#: The settings that are lists: a variable of theirs is split.
LISTS: Final = frozenset(path for path, kind in _KINDS.items() if getattr(kind, "__origin__", None) is tuple)

#: The settings that name a file: a relative path is resolved against a folder.
FILES: Final = frozenset(path for path, kind in _KINDS.items() if Path in (kind, *get_args(kind)))

#: The settings with the place of a key: a relative path in ``file:PATH`` is resolved against a folder too.
KEY_SOURCES: Final = frozenset(path for path, kind in _KINDS.items() if KeySource in (kind, *get_args(kind)))
