"""Settings from the TOML file; a running server reads it again when its writing has stopped, if it has a setting."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from broker_core.settings.layer import Layer, resolve_paths
from broker_core.settings.models import Settings
from broker_core.settings.problems import SettingsError
from broker_core.settings.setting_paths import dotted, nearest

__all__ = ["file_layer", "reread_layer", "table_of_broken"]

#: Bytes of a settings file, some ten thousand rules: reading it must not hold a server that runs up for long.
_MOST: Final = 2 * 1024 * 1024
#: Seconds without a write after which a file counts as written, and how often it is read again until then.
_WRITTEN_WITHIN: Final = 0.1
_LOOKS: Final = 30


def _read_text(file: Path) -> bytes:
    """The bytes of a settings file; one that is too large is a :exc:`SettingsError`."""
    with file.open("rb") as stream:
        text = stream.read(_MOST + 1)
    if len(text) > _MOST:
        raise SettingsError(f"{file}: it is larger than a settings file may be ({_MOST} bytes)")
    return text


def file_layer(file: Path, read: Callable[[Path], bytes] = _read_text) -> Layer:
    """The TOML file of the operator, whose bytes ``read`` gives. Raises :exc:`SettingsError`."""
    import tomllib  # not for a command without a file

    try:
        values: dict[str, Any] = tomllib.loads(read(file).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{file}: not valid TOML: {error}") from error
    except OSError as error:
        raise SettingsError(f"{file}: cannot read the settings file: {error.strerror or error}") from error
    resolve_paths(values, file.absolute().parent)
    return Layer(
        "file",
        values,
        lambda path: f"{file}: {dotted(path)}",
        lambda path: (
            f"{file}: unknown key {dotted(path)!r}, did you mean {dotted(nearest(path, Settings))!r}?"
        ),
    )


def reread_layer(file: Path) -> Layer:
    """The file that a server runs by. Raises :exc:`SettingsError`.

    One without any setting is refused: half of a file may be valid, and an empty one would let everybody in.
    """
    if file.exists() and not file.is_file():
        raise SettingsError(f"{file}: it is no file that can be read again")
    layer = file_layer(file, _written)
    if not layer.values:
        raise SettingsError(f"{file}: it has no setting, and a server runs by it")
    return layer


def _written(file: Path) -> bytes:
    """The bytes of a file that was just written when its writing has stopped."""
    text = _read_text(file)
    for _ in range(_LOOKS):
        if time.time() - file.stat().st_mtime > _WRITTEN_WITHIN:
            break
        time.sleep(_WRITTEN_WITHIN)
        text = _read_text(file)
    return text


def table_of_broken(file: Path, name: str) -> dict[str, Any]:
    """The readable lines of one table of a file that is no TOML as a whole."""
    import tomllib

    try:
        lines = _read_text(file).decode(errors="replace").splitlines()
    except (OSError, SettingsError):
        return {}
    tables: dict[str, dict[str, Any]] = {name: {}}
    prefix = ""
    for line in lines:
        if line.lstrip().startswith("["):  # an array's line, too, which is of no use here
            prefix = f"{name}." if re.match(rf"\s*\[\s*{name}\s*\]", line) else "of_another."
        elif prefix == f"{name}." or (not prefix and line.lstrip().startswith(name)):
            try:
                found = tomllib.loads(prefix + line.lstrip()).get(name)
            except (ValueError, RecursionError):
                continue
            tables[name] |= found if isinstance(found, dict) else {}
    resolve_paths(tables, file.absolute().parent)
    return tables[name]
