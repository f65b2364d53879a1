"""Settings from the TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker_core.settings.layer import resolve_paths
from broker_core.settings.models import Settings
from broker_core.settings.problems import SettingsError
from broker_core.settings.setting_paths import SettingPath, dotted, nearest

__all__ = ["FileLayer"]


class FileLayer:
    """The TOML file of the operator."""

    kind = "file"

    def __init__(self, file: Path) -> None:
        import tomllib  # not for a command without a file

        self.file = file
        try:
            with file.open("rb") as stream:
                self.values: dict[str, Any] = tomllib.load(stream)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{file}: not valid TOML: {error}") from error
        except OSError as error:
            raise SettingsError(
                f"{file}: cannot read the settings file: {error.strerror or error}"
            ) from error
        resolve_paths(self.values, file.absolute().parent)

    def label(self, path: SettingPath) -> str:
        return f"{self.file}: {dotted(path)}"

    def unknown(self, path: SettingPath) -> str:
        return f"{self.file}: unknown key {dotted(path)!r}, did you mean {dotted(nearest(path, Settings))!r}?"
