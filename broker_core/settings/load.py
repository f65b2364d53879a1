"""Loading the settings: defaults < TOML file < environment < options, with the source of each value."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from broker_core.settings.environment_layer import CONFIG_VARIABLE, environment_layer
from broker_core.settings.file_layer import file_layer, reread_layer, table_of_broken
from broker_core.settings.layer import Layer, options_layer
from broker_core.settings.models import AdminSettings, Settings
from broker_core.settings.problems import Finding, SettingsError, findings, what_is_wrong
from broker_core.settings.setting_paths import SettingPath, dotted, known_keys

__all__ = [
    "LoadedSettings",
    "SettingInForce",
    "SettingProblem",
    "find_admin_socket",
    "find_problems",
    "load_settings",
    "settings_file",
]


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One problem: its text, and the path of the setting that it leaves without its value, or ``()``."""

    path: SettingPath
    text: str


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """One setting: its path, its value as it prints, and its source.

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
    again: bool = False,
) -> LoadedSettings:
    """Read all layers; anything wrong is a :exc:`SettingsError` of one line that names the place.

    ``file`` is the option ``--config``; without it the variable ``BROKER_CORE_CONFIG`` may name the file, and without
    both there is none. ``options`` maps an option to the path of its setting and its value. ``again``: a server runs by
    the file (:func:`~broker_core.settings.file_layer.reread_layer`).
    """
    file, layers = _layers(file, options, environment, again=again)
    for layer in layers:
        for _, unknown in _unknown(layer):
            raise unknown
    try:
        return _loaded(file, layers)
    except ValidationError as error:
        _, refused, more = _all_of(error, layers)[0]
        raise SettingsError(f"{refused}{more}", layer=refused.layer) from error


def find_problems(
    file: Path | None = None,
    *,
    options: Mapping[str, tuple[SettingPath, object]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[LoadedSettings | None, list[SettingProblem]]:
    """All problems that :func:`load_settings` refuses, and the settings without them.

    A setting that is unknown or wrong is left out, as if it were not set, so that the rest can be checked. ``None`` if
    nothing can be read.
    """
    try:
        file, layers = _layers(file, options, environment)
    except SettingsError as error:
        return None, [SettingProblem((), str(error))]
    problems: list[SettingProblem] = []
    left_out: set[SettingPath] = set()
    for layer in layers:
        for path, unknown in list(_unknown(layer)):
            problems.append(SettingProblem(path, str(unknown)))
            _drop(layer.values, path)
            left_out.add(path)
    while True:
        try:
            return _loaded(file, layers), problems
        except ValidationError as error:
            dropped = False
            found = _all_of(error, layers)
            for finding, refused, _ in found:
                # The left-out settings are missing now, and nothing can be said of settings that rest on them.
                if finding.path not in left_out and not any(map(finding.is_about, left_out)):
                    problems.append(SettingProblem(finding.path, str(refused)))
            for path in {finding.path for finding, _, _ in found}:
                left_out.add(path)
                # What is missing from a table makes the table unusable.
                for left in (path, path[:-1]):
                    if sum(_drop(layer.values, left) for layer in layers):  # each of them
                        dropped = True
                        break
            if not dropped:
                return None, problems


def find_admin_socket(
    file: Path | None = None, *, environment: Mapping[str, str] | None = None
) -> Path | None:
    """The operator's socket in wrong settings, if it can be found: the running server may be asked there."""
    loaded, _ = find_problems(file, environment=environment)
    if loaded is not None:
        return loaded.settings.admin.socket
    environment = os.environ if environment is None else environment
    file = settings_file(file, environment)
    of_file = {} if file is None else table_of_broken(file, "admin")
    try:
        of_environment = environment_layer(environment).values.get("admin", {})
        return AdminSettings.model_validate(of_file | of_environment).socket
    except (SettingsError, ValueError, TypeError):
        return None


def _layers(
    file: Path | None,
    options: Mapping[str, tuple[SettingPath, object]] | None,
    environment: Mapping[str, str] | None,
    *,
    again: bool = False,
) -> tuple[Path | None, tuple[Layer, ...]]:
    environment = os.environ if environment is None else environment
    file = settings_file(file, environment)
    from_file = None if file is None else (reread_layer if again else file_layer)(file)
    from_environment = environment_layer(environment, _plugins_named(from_file))
    from_options = options_layer(options or {})
    return file, tuple(layer for layer in (from_options, from_environment, from_file) if layer is not None)


def settings_file(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Path | None:
    """The settings file: ``file`` is the option ``--config``, else the variable names it, or there is none."""
    named = (os.environ if environment is None else environment).get(CONFIG_VARIABLE)
    return Path(named) if file is None and named else file


def _loaded(file: Path | None, layers: tuple[Layer, ...]) -> LoadedSettings:
    settings = _merged(layers)
    if not any(_has(layer.values, ("catalog", "path")) for layer in layers) and file is not None:
        # If left out, it is still relative to the file: whatever the working directory, one file means one catalogue.
        path = file.absolute().parent / settings.catalog.path
        catalog = settings.catalog.model_copy(update={"path": path})
        settings = settings.model_copy(update={"catalog": catalog})
    return LoadedSettings(settings, file, layers)


def _merged(layers: tuple[Layer, ...]) -> Settings:
    values: dict[str, Any] = {}
    for layer in reversed(layers):
        values = _over(values, layer.values)
    return Settings.model_validate(values)


def _over(weaker: Mapping[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables as one: of a value in both, the stronger one; of a table in both, the values of both."""
    merged = dict(weaker)
    for key, value in stronger.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = _over(below, value)
        else:
            merged[key] = value
    return merged


def _plugins_named(layer: Layer | None) -> list[str]:
    plugins = {} if layer is None else layer.values.get("plugins", {})
    if not isinstance(plugins, dict):
        return []
    enabled = plugins.get("enabled", [])
    return [
        *(name for name in (enabled if isinstance(enabled, list) else []) if isinstance(name, str)),
        *(name for name in plugins if name != "enabled"),
    ]


def _unknown(layer: Layer) -> Iterator[tuple[SettingPath, SettingsError]]:
    """Every value of a layer that is no setting, or stands in the place of a table, with the error for it."""
    known = known_keys(Settings)

    def walk(table: Mapping[str, Any], above: SettingPath) -> Iterator[tuple[SettingPath, SettingsError]]:
        for key, value in table.items():
            path = (*above, key)
            if above == ("plugins",) and key != "enabled":
                if not isinstance(value, Mapping):
                    yield path, SettingsError(layer.unknown(path))
            elif path not in known:
                yield path, SettingsError(layer.unknown(path))
            elif known[path] is not None:
                if isinstance(value, Mapping):
                    yield from walk(value, path)
                else:
                    yield path, SettingsError(f"{layer.label(path)}: {value!r} is not a table of settings")

    return walk(layer.values, ())


def _all_of(error: ValidationError, layers: tuple[Layer, ...]) -> list[tuple[Finding, SettingsError, str]]:
    """Each finding with the error for it, and how many more there are."""
    found = findings(error)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    errors = []
    for finding in found:
        layer = _layer_of(finding.path, layers)
        kind = None if layer is None else layer.kind
        # Lists of tables are in files alone.
        path = finding.numbered if kind == "file" else finding.path
        place = dotted(path) if layer is None else layer.label(path)
        errors.append((finding, SettingsError(f"{place}: {what_is_wrong(finding.detail)}", layer=kind), more))
    return errors


def _layer_of(path: SettingPath, layers: tuple[Layer, ...]) -> Layer | None:
    """The layer that a wrong value is from; of a missing setting, the layer that has its table."""
    of_value = (layer for layer in layers if _has(layer.values, path))
    of_table = (layer for layer in layers if _has(layer.values, path[:-1]))
    return next(of_value, None) or next(of_table, None)


def _drop(values: dict[str, Any], path: SettingPath) -> bool:
    """Remove a value; returns whether it was there."""
    if not path or not _has(values, path):
        return False
    table = values
    for part in path[:-1]:
        table = table[part]
    del table[path[-1]]
    return True


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
