"""Loading the enabled plugins and checking them: a fault of one stops the start of the broker.

A plugin is a module or an instance that an entry point of the group ``broker_core`` loads to; the name of the entry
point is the plugin's. Only plugins that the operator enabled are imported. pluggy validates the implementations; they
are called one by one by the dispatcher, in the operator's order, never through pluggy's own loop (which is
synchronous, and asks the last one first).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from pluggy import PluginManager, PluginValidationError
from pydantic import BaseModel

from broker_core.plugin_api import PROJECT, HookSpecs
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.load.hook_implementations import (
    Implementation,
    call_plain,
    checked_implementation,
    dependencies,
    settings_model,
)
from broker_core.plugins.load.installed_plugins import (
    InstalledPlugin,
    choose,
    did_you_mean,
    import_plugin,
    installed_plugins,
    origin_text,
)
from broker_core.plugins.load.plugin_options import PluginOptions, UnusableTable, live_keys, read_table
from broker_core.plugins.raised_exceptions import in_words

__all__ = ["RELOADED", "RESERVED", "LoadedPlugin", "PluginRegistry", "chain_order"]

#: The hook of a plugin that has live settings.
RELOADED: Final = "broker_core_reloaded"
#: Names that a plugin cannot have, and their owners: the commands of `broker-core`, which would hide its own; the key
#: of the table ``[plugins]``, which is in the place of its settings; and the default listers.
RESERVED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "check",
            "clients",
            "config",
            "demo",
            "explain",
            "kafka",
            "list",
            "plugins",
            "reload",
            "serve",
            "shrink-guard",
            "tokens",
            "top",
            "topics",
        ),
        "a command of broker-core",
    ),
    "enabled": "a setting",
    **dict.fromkeys(("catalog", "upstream"), "a lister of broker-core"),
}
#: Valid names: they are keys of settings, labels of metrics and commands.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def chain_order(names: Iterable[str]) -> dict[str, int]:
    """The number of each plugin in the chain, from 1, as shown everywhere."""
    return {name: number for number, name in enumerate(names, 1)}


@dataclass(slots=True, eq=False)
class LoadedPlugin:
    """A plugin that was imported and checked. Only its ``options`` change, at a reload.

    ``model`` is the model of its settings, ``live`` the keys of its table that are live.
    """

    name: str
    distribution: str | None
    version: str | None
    plugin: object
    options: PluginOptions
    implementations: Mapping[str, Implementation]
    depends_on: frozenset[str]
    model: type[BaseModel] | None
    live: frozenset[str]
    warnings: tuple[str, ...] = ()

    @property
    def hooks(self) -> tuple[str, ...]:
        """The names of the hooks that it implements, sorted."""
        return tuple(sorted(self.implementations))

    @property
    def property_keys(self) -> frozenset[str] | None:
        """The request properties by which it selects topics: ``property_keys`` of its settings, if they have it."""
        own = getattr(self.options.settings, "property_keys", None)
        return frozenset(filter(_is_text, own)) if isinstance(own, list | tuple | set | frozenset) else None

    @property
    def lists(self) -> bool:
        """Whether the plugin has the hook that lists."""
        return "broker_core_list_topics" in self.implementations

    @property
    def origin(self) -> str | None:
        """Distribution and version for messages, ``None`` for a plugin that was given as an object."""
        return origin_text(self.distribution, self.version)

    def options_of(self, table: Mapping[str, object]) -> PluginOptions:
        """The options from another table. Raises :exc:`PluginLoadError`."""
        return _read(self.name, self.origin, table, self.model)

    def call_plain(self, hook: str, **values: Any) -> Any:
        """Call a hook that runs before any event loop does; ``None`` if it is not implemented.

        Raises :exc:`PluginLoadError` naming the plugin for whatever it raises.
        """
        return call_plain(self.name, self.origin, self.implementations, hook, values)


def _is_text(key: object) -> TypeGuard[str]:
    return isinstance(key, str)


class PluginRegistry:
    """The plugins of one broker, in the order of the chain."""

    def __init__(self) -> None:
        self._manager = PluginManager(PROJECT)
        self._manager.add_hookspecs(HookSpecs)
        self._plugins: dict[str, LoadedPlugin] = {}

    @classmethod
    def load(
        cls,
        enabled: Sequence[str] = (),
        tables: Mapping[str, Mapping[str, object]] | None = None,
        *,
        given: Mapping[str, object] | None = None,
    ) -> PluginRegistry:
        """The registry of the ``enabled`` plugins, with the operator's ``tables`` by name of the plugin.

        ``given`` are plugins as objects, for tests and for programs that embed a broker: they take their place in
        ``enabled`` by name, and others come last. Raises :exc:`PluginLoadError`.
        """
        registry = cls()
        tables, given = tables or {}, given or {}
        installed = installed_plugins() if set(enabled) - set(given) or set(tables) - set(given) else []
        for name in [*enabled, *(name for name in given if name not in enabled)]:
            if name in given:
                registry.register(name, given[name], tables.get(name))
            else:
                chosen = choose(name, installed)
                registry._add(chosen.name, import_plugin(chosen), tables.get(name), chosen)
        known = {*registry._plugins, *(plugin.name for plugin in installed)}
        for name in tables:
            if name not in known:
                raise PluginLoadError(
                    name,
                    None,
                    f"has a table in the settings, but is not installed{did_you_mean(name, known)}",
                )
        return registry

    def register(self, name: str, plugin: object, table: Mapping[str, object] | None = None) -> LoadedPlugin:
        """Add a plugin that is given as an object to the end of the chain. Raises :exc:`PluginLoadError`."""
        return self._add(name, plugin, table, None)

    def __iter__(self) -> Iterator[LoadedPlugin]:
        return iter(self._plugins.values())

    def __len__(self) -> int:
        return len(self._plugins)

    def __getitem__(self, name: str) -> LoadedPlugin:
        return self._plugins[name]

    def __contains__(self, name: object) -> bool:
        return name in self._plugins

    @property
    def warnings(self) -> list[str]:
        """Warnings for the operator that do not stop the start; logged by the dispatcher at the start."""
        found = [f"plugin {plugin.name!r} {text}" for plugin in self for text in plugin.warnings]
        return [*found, *self._contradictions()]

    @property
    def property_keys(self) -> frozenset[str]:
        """The request properties by which plugins select topics: the field ``property_keys`` of their settings."""
        return frozenset(key for plugin in self for key in plugin.property_keys or ())

    def describe(self) -> list[dict[str, Any]]:
        """One dictionary of plain values for each plugin, in the order of the chain."""
        order = chain_order(self._plugins)
        return [
            {
                "name": plugin.name,
                "distribution": plugin.distribution,
                "version": plugin.version,
                "order": order[plugin.name],
                "hooks": list(plugin.hooks),
                "namespaces": list(plugin.options.namespaces),
                "deadline": plugin.options.deadline,
                "on_failure": plugin.options.on_failure,
                "max_stale": plugin.options.max_stale,
                "verify_filtered": plugin.options.verify_filtered,
                "depends_on": sorted(plugin.depends_on),
                "warnings": list(plugin.warnings),
                "state": "enabled",
            }
            for plugin in self
        ]

    def _add(
        self,
        name: str,
        plugin: object,
        table: Mapping[str, object] | None,
        installed: InstalledPlugin | None,
    ) -> LoadedPlugin:
        origin = installed.origin if installed else None
        if name in RESERVED:
            raise PluginLoadError(
                name,
                origin,
                f"cannot have this name, which {RESERVED[name]} has: name its entry point otherwise, "
                f"{name + '-plugin'!r} say",
            )
        if not _NAME.fullmatch(name):
            raise PluginLoadError(
                name, origin, "cannot have this name: letters, digits, '.', '_' and '-', 64 at most"
            )
        if plugin is None or inspect.isclass(plugin):
            what = "None" if plugin is None else f"the class {plugin.__name__}"
            raise PluginLoadError(name, origin, f"is {what}: a plugin is a module or an instance")
        try:
            self._manager.register(plugin, name)
        except PluginValidationError as error:
            raise PluginLoadError(name, origin, f"has an unusable hook: {_unusable(error)}") from error
        except ValueError as error:
            raise PluginLoadError(
                name, origin, "is named twice, or is the same object as another one"
            ) from error
        try:
            loaded = self._checked(name, origin, plugin, table or {}, installed)
        except PluginLoadError:
            self._manager.unregister(name=name)
            raise
        self._plugins[name] = loaded
        return loaded

    def _checked(
        self,
        name: str,
        origin: str | None,
        plugin: object,
        table: Mapping[str, object],
        installed: InstalledPlugin | None,
    ) -> LoadedPlugin:
        try:
            self._manager.check_pending()
        except PluginValidationError as error:
            raise PluginLoadError(name, origin, f"has an unusable hook: {_unusable(error)}") from error
        implementations = self._implementations(name, origin, plugin)
        model = settings_model(name, origin, implementations)
        options = _read(name, origin, table, model)
        try:
            live = live_keys(model) if RELOADED in implementations else frozenset()
        except ValueError as error:
            raise PluginLoadError(name, origin, f"has {RELOADED}, but {error}") from None
        return LoadedPlugin(
            name=name,
            distribution=installed.distribution if installed else None,
            version=installed.version if installed else None,
            plugin=plugin,
            options=options,
            implementations=implementations,
            depends_on=dependencies(name, origin, implementations),
            model=model,
            live=live,
            warnings=tuple(self._mistakes(plugin, implementations)),
        )

    def _implementations(self, name: str, origin: str | None, plugin: object) -> dict[str, Implementation]:
        implementations: dict[str, Implementation] = {}
        for caller in self._manager.get_hookcallers(plugin) or ():
            if caller.spec is None:
                continue  # optionalhook=True: the plugin knows that this broker may not have the hook
            known = (*caller.spec.argnames, *caller.spec.kwargnames)
            for impl in caller.get_hookimpls():
                if impl.plugin is not plugin:
                    continue
                if caller.name in implementations:
                    raise PluginLoadError(name, origin, f"implements {caller.name} twice")
                implementations[caller.name] = checked_implementation(name, origin, caller.name, impl, known)
        return implementations

    def _mistakes(self, plugin: object, implementations: Mapping[str, Implementation]) -> Iterator[str]:
        functions = {each.function for each in implementations.values()}
        for attribute in dir(plugin):
            if attribute.startswith(f"{PROJECT}_") and attribute not in implementations:
                candidate = inspect.getattr_static(plugin, attribute, None)
                if callable(candidate) and not inspect.isroutine(candidate):
                    kind = type(candidate).__name__
                    yield f"defines {attribute} as a {kind}, not as a function: it is never called"
                elif inspect.isroutine(candidate) and candidate not in functions:
                    if self._manager.parse_hookimpl_opts(plugin, attribute) is None:
                        yield f"defines {attribute} without @hookimpl: it is never called"
        if not implementations:
            yield "implements no hook"

    def _contradictions(self) -> Iterator[str]:
        """``tryfirst`` and ``trylast`` that the operator's order overrules."""
        for hook in sorted({hook for plugin in self for hook in plugin.implementations}):
            chain = [plugin for plugin in self if hook in plugin.implementations]
            for position, plugin in enumerate(chain):
                implementation = plugin.implementations[hook]
                place = f"but is number {position + 1} of {len(chain)} in the operator's order, which counts"
                if implementation.tryfirst and position > 0:
                    yield f"plugin {plugin.name!r} wants its {hook} to be called first (tryfirst), {place}"
                if implementation.trylast and position < len(chain) - 1:
                    yield f"plugin {plugin.name!r} wants its {hook} to be called last (trylast), {place}"


def _read(
    name: str, origin: str | None, table: Mapping[str, object], model: type[BaseModel] | None
) -> PluginOptions:
    try:
        return read_table(table, model)
    except UnusableTable as error:
        missing = tuple(f"plugins.{name}.{key}" for key in error.missing)
        raise PluginLoadError(
            name, origin, f"cannot use its settings: plugins.{name}.{error}", missing=missing
        ) from None
    except Exception as error:  # a validator of the plugin, which may raise anything
        raise PluginLoadError(
            name, origin, f"cannot use its settings: its model failed: {in_words(error)}"
        ) from error


_UNKNOWN_ARGUMENTS: Final = re.compile(r"for hook '(\w+)'.*Argument\(s\) \{(.*?)\} are declared", re.DOTALL)


def _unusable(error: PluginValidationError) -> str:
    """A message for what pluggy refuses, with a suggestion."""
    arguments = _UNKNOWN_ARGUMENTS.search(str(error))
    if arguments is not None:
        hook, unknown = arguments[1], sorted(re.findall(r"'(\w+)'", arguments[2]))
        known = list(inspect.signature(getattr(HookSpecs, hook)).parameters)[1:]
        has = f"it has {', '.join(known)}" if known else "it has none"
        return f"{hook} takes {unknown[0]!r}, an argument that this hook does not have: {has}" + did_you_mean(
            unknown[0], known
        )
    known = [hook for hook in vars(HookSpecs) if hook.startswith(f"{PROJECT}_")]
    misspelt = str(error).partition("unknown hook ")[2].split("'")[1:2]
    return f"{error}{did_you_mean(misspelt[0], known) if misspelt else ''}"
