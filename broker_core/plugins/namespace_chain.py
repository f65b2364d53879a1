"""The plugins of one namespace: the callers of each hook, in the operator's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from broker_core.names import NamespaceName
from broker_core.plugin_api import HOOK_FACTS
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.load.registry import LoadedPlugin

__all__ = ["NamespaceChain", "NamespaceChains"]

_LIST: Final = "broker_core_list_topics"
_DESCRIBE: Final = "broker_core_describe_topics"

#: Namespaces whose chain is remembered; clients choose namespaces, so this is bounded.
_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class NamespaceChain:
    """The plugins of one namespace by hook. ``by_hook`` has only hooks that one of them implements."""

    by_hook: Mapping[str, tuple[HookCaller, ...]]
    #: Each plugin that lists; ``None`` if it does not list this namespace.
    listers: tuple[tuple[str, HookCaller | None], ...]
    #: The plugins that list or describe this namespace; ``None`` if one only lists.
    describers: tuple[tuple[LoadedPlugin, HookCaller | None], ...]
    #: Whether one of them has a hook that shapes the answers of listings.
    shapes_answers: bool

    def of(self, hook: str) -> tuple[HookCaller, ...]:
        """The callers of one hook."""
        return self.by_hook.get(hook, ())

    @property
    def lists(self) -> bool:
        """Whether one of them lists this namespace."""
        return _LIST in self.by_hook


class NamespaceChains:
    """The chains of all namespaces; ``callers`` are by plugin and hook."""

    def __init__(
        self, plugins: Iterable[LoadedPlugin], callers: Mapping[str, Mapping[str, HookCaller]]
    ) -> None:
        self._plugins = tuple(plugins)
        self._callers = callers
        self._chains: dict[NamespaceName, NamespaceChain] = {}
        #: The hooks that some plugin implements, for any namespaces.
        self.hooks = frozenset(hook for hooks in callers.values() for hook in hooks)

    def of(self, namespace: NamespaceName) -> NamespaceChain:
        """The chain of one namespace."""
        chain = self._chains.get(namespace)
        if chain is None:
            if len(self._chains) >= _REMEMBERED:
                self._chains.clear()
            chain = self._chains[namespace] = self._made(namespace)
        return chain

    def _made(self, namespace: NamespaceName) -> NamespaceChain:
        by_hook: dict[str, tuple[HookCaller, ...]] = {}
        listers: list[tuple[str, HookCaller | None]] = []
        describers: list[tuple[LoadedPlugin, HookCaller | None]] = []
        for plugin in self._plugins:
            callers = self._callers[plugin.name]
            covers = plugin.options.covers(namespace)
            if _LIST in callers:
                listers.append((plugin.name, callers[_LIST] if covers else None))
            if not covers:
                continue
            if _LIST in callers or _DESCRIBE in callers:
                describers.append((plugin, callers.get(_DESCRIBE)))
            for hook, caller in callers.items():
                by_hook[hook] = (*by_hook.get(hook, ()), caller)
        shapes = any(HOOK_FACTS[hook].shapes_answers for hook in by_hook)
        return NamespaceChain(by_hook, tuple(listers), tuple(describers), shapes)
