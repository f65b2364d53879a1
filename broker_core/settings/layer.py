"""A layer of settings: the values of the file, the environment or the options, with their names there.

The layer of the options of the command line is made here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker_core.settings.key_source import KeySource
from broker_core.settings.setting_paths import FILES, KEY_SOURCES, SettingPath, dotted

__all__ = ["Layer", "options_layer", "resolve_paths"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of settings: the file (``kind`` is ``"file"``), the environment (``"env"``) or options (``"option"``).

    ``label`` gives the name of a value's place for errors, such as the file and the key, or the variable; ``unknown``
    the error for a value that is no setting: one line, with the nearest setting.
    """

    kind: str
    values: dict[str, Any]
    label: Callable[[SettingPath], str]
    unknown: Callable[[SettingPath], str]


def resolve_paths(values: dict[str, Any], folder: Path) -> None:
    """Resolve relative paths by their source: in the settings file's folder, or the working directory."""
    for *tables, key in FILES | KEY_SOURCES:
        table: Any = values
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if (
            not isinstance(table, dict)
            or not isinstance(table.get(key), str | Path)
            or not str(table[key]).strip()
        ):
            continue
        if (*tables, key) in FILES:
            table[key] = folder / Path(table[key]).expanduser()
        else:
            with contextlib.suppress(ValueError):  # its validation says what is wrong
                table[key] = KeySource.parse(table[key]).in_folder(folder)


def options_layer(options: Mapping[str, tuple[SettingPath, object]]) -> Layer:
    """The options of the command line that override a setting.

    ``options``: option (``--pulsar``) to the path of its setting and its value; ``None`` is not given.
    """
    values: dict[str, Any] = {}
    names: dict[SettingPath, str] = {}
    for option, (path, value) in options.items():
        if value is not None:
            names[path] = option
            values.setdefault(path[0], {})[path[1]] = value
    resolve_paths(values, Path.cwd())

    def label(path: SettingPath) -> str:
        return names.get(path, dotted(path))

    return Layer("option", values, label, lambda path: f"{label(path)}: unknown setting {dotted(path)!r}")
