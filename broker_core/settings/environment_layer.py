"""Settings from environment variables.

Every setting has a variable ``BROKER_CORE_<TABLE>__<KEY>`` in capitals, such as ``BROKER_CORE_PULSAR__LISTEN``, with
two underscores between the parts; one underscore is understood as well if table and key are exactly those of a setting.
A plugin's own settings are ``BROKER_CORE_PLUGINS__<NAME>__<KEY>`` with ``_`` for every other character of the plugin's
name. A list is JSON or separated by commas. Variables without ``__`` that name no setting belong to others: a
Kubernetes service called ``broker-core`` puts ``BROKER_CORE_SERVICE_HOST`` into every pod.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from broker_core.compact_json import read_json
from broker_core.settings.layer import Layer, resolve_paths
from broker_core.settings.models import Settings
from broker_core.settings.problems import SettingsError
from broker_core.settings.setting_paths import LISTS, SettingPath, dotted, known_keys, nearest

__all__ = ["CONFIG_VARIABLE", "PREFIX", "environment_layer", "variable_name"]

PREFIX: Final = "BROKER_CORE_"
#: Not a setting: names the settings file if the option ``--config`` is not given.
CONFIG_VARIABLE: Final = "BROKER_CORE_CONFIG"


def environment_layer(environment: Mapping[str, str], plugins: Iterable[str] = ()) -> Layer:
    """The variables ``BROKER_CORE_...`` of the environment. Raises :exc:`SettingsError`.

    ``plugins`` are the names of plugins that the file knows, which a variable spells with ``_``.
    """
    values: dict[str, Any] = {}
    variables: dict[SettingPath, str] = {}
    given = _settings_among(environment)
    plugins = list(plugins)
    if ("plugins", "enabled") in given:
        variable = given["plugins", "enabled"]
        plugins += map(str, _list(environment[variable], variable))
    for path, variable in given.items():
        text = environment[variable]
        if path[0] == "plugins" and len(path) > 2:
            named = ("plugins", _plugin_name(path[1], plugins), *path[2:])
            _set(values, named, variable, _plugin_value(text, variable))
            variables[named] = variable
        else:
            _set(values, path, variable, _list(text, variable) if path in LISTS else text)
            variables[path] = variable
    resolve_paths(values, Path.cwd())

    def label(path: SettingPath) -> str:
        return variables.get(path) or variable_name(path)

    def unknown(path: SettingPath) -> str:
        whole = next((known for known in variables if known[: len(path)] == path), path)
        meant = variable_name(nearest(whole, Settings, leaves=True))
        return f"{label(whole)}: unknown setting {dotted(whole)!r}, did you mean {meant}?"

    return Layer("env", values, label, unknown)


def _set(values: dict[str, Any], path: SettingPath, variable: str, value: object) -> None:
    table = values
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise SettingsError(f"{variable}: {part!r} is a setting, not a table of settings")
    table[path[-1]] = value


def variable_name(path: SettingPath) -> str:
    """The variable of a setting: ``BROKER_CORE_PULSAR__LISTEN``."""
    return PREFIX + "__".join(re.sub(r"[^A-Za-z0-9]", "_", part) for part in path).upper()


def _settings_among(environment: Mapping[str, str]) -> dict[SettingPath, str]:
    """The path of every variable that is meant as a setting, known or not."""
    single = {"_".join(path): path for path, table in known_keys(Settings).items() if table is None}
    variables: dict[SettingPath, str] = {}
    for variable in sorted(environment):  # two underscores sort last, and win
        if variable.upper().startswith(PREFIX) and variable.upper() != CONFIG_VARIABLE:
            name = variable[len(PREFIX) :].lower()
            if "__" in name:
                variables[tuple(name.split("__"))] = variable
            elif name in single:
                variables[single[name]] = variable
    return variables


def _plugin_name(spelled: str, plugins: Iterable[str]) -> str:
    """The plugin that a variable means; if unknown, its name with ``-``, as distributions are named."""
    for plugin in plugins:
        if re.sub(r"[^a-z0-9]", "_", plugin.lower()) == spelled:
            return plugin
    return spelled.replace("_", "-")


def _plugin_value(text: str, variable: str) -> object:
    """The value of a plugin's variable: a list or a table of JSON, or else plain text."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return read_json(text)
    except json.JSONDecodeError:
        return text
    except ValueError as error:
        raise SettingsError(f"{variable}: {error}") from None


def _list(text: str, variable: str) -> list[object]:
    if text.lstrip().startswith("["):
        try:
            return list(read_json(text))
        except ValueError as error:
            raise SettingsError(f"{variable}: {text!r} is not a JSON list: {error}") from None
    return [item.strip() for item in text.split(",") if item.strip()]
