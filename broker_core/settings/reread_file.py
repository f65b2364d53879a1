"""The TOML file as a running server reads it again: when its writing has stopped, and only if it has a setting."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from broker_core.settings.file_layer import file_layer, read_text
from broker_core.settings.layer import Layer
from broker_core.settings.problems import SettingsError

__all__ = ["reread_layer"]

#: Seconds without a write after which a file counts as written, and how often it is read again until then.
_WRITTEN_WITHIN: Final = 0.1
_LOOKS: Final = 30


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
    text = read_text(file)
    for _ in range(_LOOKS):
        if time.time() - file.stat().st_mtime > _WRITTEN_WITHIN:
            break
        time.sleep(_WRITTEN_WITHIN)
        text = read_text(file)
    return text
