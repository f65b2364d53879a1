"""Live settings, which change while the server runs; the differences of two files, and the settings in force.

A model says in its ``live`` which of its fields are. Any other needs a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from broker_core.settings.mask_secrets import masked
from broker_core.settings.models import PluginsSettings, Settings
from broker_core.settings.problems import SettingsError, findings, what_is_wrong
from broker_core.settings.setting_paths import SettingPath, dotted, table_model
from broker_core.settings.table import Table

__all__ = ["SettingChange", "live_settings", "merged", "setting_changes"]

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting whose value in the file differs from the one in force. ``live``: it needs no restart."""

    path: SettingPath
    before: Any
    after: Any
    live: bool

    @property
    def shown(self) -> dict[str, Any]:
        """The change as it may be shown: values as they print, secrets masked."""
        return {
            "setting": dotted(self.path),
            "before": masked(self.path, self.before),
            "after": masked(self.path, self.after),
        }


def live_settings(model: type[BaseModel] = Settings) -> Iterator[tuple[SettingPath, bool]]:
    """Every setting and whether it is live, in the order of the models; tables of plugins are left out."""
    for name in model.model_fields:
        table = table_model(model, name)
        live = _is_live(model, name)
        if table is None:
            yield (name,), live
        else:
            for path, inner in live_settings(table):
                yield (name, *path), live or inner


def setting_changes(
    before: Settings, after: Settings, live_plugins: Mapping[str, AbstractSet[str]]
) -> list[SettingChange]:
    """The settings that ``after`` changes. ``live_plugins`` are the live keys of each plugin's table."""
    texts = before.model_dump(mode="json"), after.model_dump(mode="json")
    return [
        SettingChange(path, _at(texts[0], path), _at(texts[1], path), live)
        for path, live in _differences(before, after, (), live_plugins, live=False)
    ]


def merged(before: Settings, after: Settings, live_plugins: Mapping[str, AbstractSet[str]]) -> Settings:
    """The settings that are in force once ``after`` was read: its live ones, and all others as they were.

    Raises :exc:`SettingsError` if the two do not go together.
    """
    try:
        return _merged(before, after, live_plugins)
    except ValidationError as error:
        first = findings(error)[0]
        raise SettingsError(
            f"{dotted(first.path)}: {what_is_wrong(first.detail)}: what the file changes besides needs a restart"
        ) from error


def _is_live(model: type[BaseModel], name: str) -> bool:
    live = model.live if issubclass(model, Table) else frozenset()
    return not live.isdisjoint({"*", name})


def _differences(
    before: BaseModel,
    after: BaseModel,
    above: SettingPath,
    live_plugins: Mapping[str, AbstractSet[str]],
    *,
    live: bool,
) -> Iterator[tuple[SettingPath, bool]]:
    model = type(before)
    for name in model.model_fields:
        old, new, path = getattr(before, name), getattr(after, name), (*above, name)
        if old == new:
            continue
        is_live = live or _is_live(model, name)
        if isinstance(old, BaseModel) and isinstance(new, BaseModel):
            yield from _differences(old, new, path, live_plugins, live=is_live)
        else:
            yield path, is_live
    if isinstance(before, PluginsSettings) and isinstance(after, PluginsSettings):
        for plugin in sorted({*before.tables, *after.tables}):
            former, newer = before.table(plugin), after.table(plugin)
            for key in sorted({*former, *newer}):
                if former.get(key) != newer.get(key):
                    yield (*above, plugin, key), _is_live_key(live_plugins, plugin, key)


def _merged(before: T, after: T, live_plugins: Mapping[str, AbstractSet[str]]) -> T:
    model = type(before)
    values: dict[str, Any] = {}
    for name in model.model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if _is_live(model, name):
            values[name] = new
        elif isinstance(old, BaseModel) and isinstance(new, BaseModel):
            values[name] = _merged(old, new, live_plugins)
        else:
            values[name] = old
    if isinstance(before, PluginsSettings) and isinstance(after, PluginsSettings):
        for plugin in {*before.tables, *after.tables}:
            sides = (before.table(plugin), False), (after.table(plugin), True)
            values[plugin] = {
                key: value
                for table, is_after in sides
                for key, value in table.items()
                if _is_live_key(live_plugins, plugin, key) is is_after
            }
    return model.model_validate(values)


def _is_live_key(live_plugins: Mapping[str, AbstractSet[str]], plugin: str, key: str) -> bool:
    return key in live_plugins.get(plugin, frozenset())


def _at(values: Any, path: SettingPath) -> Any:
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values
