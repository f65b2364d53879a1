"""Defaults < TOML file < environment < options: what is in force, and from where."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from broker_core.settings.layers import CONFIG_VARIABLE, EnvironmentLayer, FileLayer, Layer, OptionsLayer
from broker_core.settings.models import Settings
from broker_core.settings.problems import (
    SettingPath,
    SettingsError,
    dotted,
    findings,
    known_keys,
    what_is_wrong,
)

__all__ = ["LoadedSettings", "SettingInForce", "load_settings"]


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """One setting: its path, its value as it prints, and where it is from.

    ``origin`` is ``"default"``, ``"file"``, ``"env"`` or ``"option"``; ``source`` names the file, the variable or the
    option (empty for a default).
    """

    path: SettingPath
    value: Any
    origin: str
    source: str


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in force with the layers that they came from, the strongest layer first."""

    settings: Settings
    file: Path | None
    layers: tuple[Layer, ...]

    def origin(self, path: SettingPath) -> Layer | None:
        """The layer that decided about the setting, or ``None`` for a default."""
        return next((layer for layer in self.layers if _has(layer.values, path)), None)

    def in_force(self) -> Iterator[SettingInForce]:
        """Every setting in force, table by table, unmasked. An absent ``[http]`` or ``[upstream]`` is left out."""
        for path, value in _leaves(self.settings.model_dump(mode="json")):
            layer = self.origin(path)
            if layer is None:
                yield SettingInForce(path, value, "default", "")
            else:
                source = str(self.file) if layer.kind == "file" else layer.label(path)
                yield SettingInForce(path, value, layer.kind, source)


def load_settings(
    file: Path | None = None,
    *,
    options: Mapping[str, tuple[SettingPath, object]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """Read all layers; anything wrong is a :exc:`SettingsError` of one line that names the place.

    ``file`` is the option ``--config``; without it the variable ``BROKER_CORE_CONFIG`` may name the file, and without
    both there is none. ``options`` maps an option to the path of its setting and its value.
    """
    environment = os.environ if environment is None else environment
    if file is None and environment.get(CONFIG_VARIABLE):
        file = Path(environment[CONFIG_VARIABLE])
    from_file = None if file is None else FileLayer(file)
    from_environment = EnvironmentLayer(environment, _plugins_named(from_file))
    from_options = OptionsLayer(options or {})
    layers: tuple[Layer, ...] = tuple(
        layer for layer in (from_options, from_environment, from_file) if layer is not None
    )
    for layer in layers:
        _refuse_unknown(layer)
    try:
        settings = _merged(layers)
    except ValidationError as error:
        raise _first_of(error, layers) from error
    if not any(_has(layer.values, ("catalog", "path")) for layer in layers) and file is not None:
        # Left out, it is still the file's own business: whatever the working directory, the same file, the same topics.
        path = file.absolute().parent / settings.catalog.path
        catalog = settings.catalog.model_copy(update={"path": path})
        settings = settings.model_copy(update={"catalog": catalog})
    return LoadedSettings(settings, file, layers)


class _LayerSource(PydanticBaseSettingsSource):
    """Hands a layer to pydantic-settings, which merges them."""

    def __init__(self, settings_cls: type[BaseSettings], layer: Layer) -> None:
        super().__init__(settings_cls)
        self._layer = layer

    def get_field_value(self, _field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return self._layer.values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return self._layer.values


def _merged(layers: tuple[Layer, ...]) -> Settings:
    class Layered(Settings):
        @classmethod
        def settings_customise_sources(
            cls, *_: Any, **_sources: Any
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return tuple(_LayerSource(cls, layer) for layer in layers)

    layered = Layered()
    return Settings.model_construct(
        layered.model_fields_set, **{name: getattr(layered, name) for name in Settings.model_fields}
    )


def _plugins_named(layer: Layer | None) -> list[str]:
    plugins = {} if layer is None else layer.values.get("plugins", {})
    if not isinstance(plugins, dict):
        return []
    enabled = plugins.get("enabled", [])
    return [
        *(name for name in (enabled if isinstance(enabled, list) else []) if isinstance(name, str)),
        *(name for name in plugins if name != "enabled"),
    ]


def _refuse_unknown(layer: Layer) -> None:
    known = known_keys(Settings)

    def walk(table: Mapping[str, Any], above: SettingPath) -> None:
        for key, value in table.items():
            path = (*above, key)
            if above == ("plugins",) and key != "enabled":
                if not isinstance(value, Mapping):
                    raise SettingsError(layer.unknown(path))
                continue
            if path not in known:
                raise SettingsError(layer.unknown(path))
            if known[path] is not None:
                if not isinstance(value, Mapping):
                    raise SettingsError(f"{layer.label(path)}: {value!r} is not a table of settings")
                walk(value, path)

    walk(layer.values, ())


def _first_of(error: ValidationError, layers: tuple[Layer, ...]) -> SettingsError:
    found = findings(error)
    path, detail = found[0]
    layer = next((layer for layer in layers if _has(layer.values, path)), None)
    if layer is None:  # a setting that is missing from a table that is there
        layer = next((layer for layer in layers if _has(layer.values, path[:-1])), None)
    place = dotted(path) if layer is None else layer.label(path)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    kind = None if layer is None else layer.kind
    return SettingsError(f"{place}: {what_is_wrong(detail)}{more}", layer=kind)


def _has(values: Mapping[str, Any], path: SettingPath) -> bool:
    table: Any = values
    for part in path:
        if not isinstance(table, Mapping) or part not in table:
            return False
        table = table[part]
    return True


def _leaves(table: Mapping[str, Any], above: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    for key, value in table.items():
        path = (*above, key)
        if isinstance(value, Mapping) and (value or len(path) == 1):
            yield from _leaves(value, path)
        elif value is not None:
            yield path, value
