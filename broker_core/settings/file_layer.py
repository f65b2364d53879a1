"""Settings from the TOML file."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any, Final

from broker_core.settings.layer import Layer, resolve_paths
from broker_core.settings.models import Settings
from broker_core.settings.problems import SettingsError
from broker_core.settings.setting_paths import SettingPath, dotted, nearest

__all__ = ["file_layer", "table_of_broken"]

#: Bytes of a settings file, some ten thousand rules: reading it must not hold a server that runs up for long.
_MOST: Final = 2 * 1024 * 1024
#: Seconds without a write after which a file counts as written, and how often it is read again until then.
_WRITTEN_WITHIN: Final = 0.1
_LOOKS: Final = 30


def file_layer(file: Path, *, again: bool = False) -> Layer:
    """The TOML file of the operator. Raises :exc:`SettingsError`.

    ``again``: a server runs by it. A file that was just written is read when the writing has stopped, and one without
    any setting is refused: half of a file may be valid, and an empty one would let everybody in.
    """
    import tomllib  # not for a command without a file

    if again and file.exists() and not file.is_file():
        raise SettingsError(f"{file}: it is no file that can be read again")
    try:
        text = _read(file)
        for _ in range(_LOOKS if again else 0):
            if time.time() - file.stat().st_mtime > _WRITTEN_WITHIN:
                break
            time.sleep(_WRITTEN_WITHIN)
            text = _read(file)
        values: dict[str, Any] = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{file}: not valid TOML: {error}") from error
    except OSError as error:
        raise SettingsError(f"{file}: cannot read the settings file: {error.strerror or error}") from error
    if again and not values:
        raise SettingsError(f"{file}: it has no setting, and a server runs by it")
    resolve_paths(values, file.absolute().parent)

    def unknown(path: SettingPath) -> str:
        return f"{file}: unknown key {dotted(path)!r}, did you mean {dotted(nearest(path, Settings))!r}?"

    return Layer("file", values, lambda path: f"{file}: {dotted(path)}", unknown)


def _read(file: Path) -> bytes:
    with file.open("rb") as stream:
        text = stream.read(_MOST + 1)
    if len(text) > _MOST:
        raise SettingsError(f"{file}: it is larger than a settings file may be ({_MOST} bytes)")
    return text


def table_of_broken(file: Path, name: str) -> dict[str, Any]:
    """The readable lines of one table of a file that is no TOML as a whole."""
    import tomllib

    try:
        lines = _read(file).decode(errors="replace").splitlines()
    except (OSError, SettingsError):
        return {}
    values: dict[str, Any] = {}
    prefix = ""
    for line in lines:
        if line.lstrip().startswith("["):  # an array's line, too, which is of no use here
            prefix = f"{name}." if re.match(rf"\s*\[\s*{name}\s*\]", line) else "of_another."
        elif prefix == f"{name}." or (not prefix and line.lstrip().startswith(name)):
            try:
                found = tomllib.loads(prefix + line.lstrip()).get(name)
            except (ValueError, RecursionError):
                continue
            values |= found if isinstance(found, dict) else {}
    of_name = {name: values}
    resolve_paths(of_name, file.absolute().parent)
    return of_name[name]
