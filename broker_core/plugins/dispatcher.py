"""Calls of all plugins: one object for each hook, the start and the end, and the state of all plugins."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import chain
from typing import Any

import structlog

from broker_core.access import Access, Peer, Principal
from broker_core.change_log import ChangeLog
from broker_core.names import NamespaceName
from broker_core.plugin_api import ERROR, HOOK_FACTS, PROPERTY, is_of_properties
from broker_core.plugins.background_tasks import BackgroundTasks
from broker_core.plugins.call.event_loop_time import LoopTime
from broker_core.plugins.call.hook_caller import CallObserver, HookCaller
from broker_core.plugins.call.plugin_runner import PluginRunner
from broker_core.plugins.failures import ChainStep
from broker_core.plugins.hooks.authenticators import AUTHENTICATE, authenticated_by
from broker_core.plugins.hooks.dependencies import DeclaredDependencies, VersionHook
from broker_core.plugins.hooks.describers import DescribeHook
from broker_core.plugins.hooks.gates import AUTHORIZE, pass_gates
from broker_core.plugins.hooks.http_sites import PluginSite, plugin_sites
from broker_core.plugins.hooks.listers import LIST, ListerHook
from broker_core.plugins.hooks.masks import VISIBLE, MaskHook
from broker_core.plugins.hooks.observers import Observers
from broker_core.plugins.hooks.startup_shutdown import offered_log, reloaded, shut_down, start_up
from broker_core.plugins.load.plugin_options import PluginOptions
from broker_core.plugins.load.registry import LoadedPlugin, PluginRegistry
from broker_core.plugins.namespace_chain import NamespaceChains
from broker_core.redaction import without_credentials

__all__ = ["Dispatcher"]

log = structlog.get_logger(__name__)


class Dispatcher:
    """Dispatcher of calls to the plugins of one registry. ``on_call`` is called after each call, for metrics.

    ``has_gates`` and ``has_observers`` are plain attributes: without gates or observers they cost nothing.
    """

    def __init__(self, registry: PluginRegistry, *, on_call: CallObserver | None = None) -> None:
        self.registry = registry
        self._runners = {plugin.name: PluginRunner(plugin.name) for plugin in registry}
        #: The dependencies of each plugin's answers.
        self.dependencies = DeclaredDependencies(registry)
        #: The callers of the hooks that are called repeatedly, by plugin.
        self.callers: dict[str, dict[str, HookCaller]] = {
            plugin.name: {
                hook: HookCaller(plugin, hook, self._runners[plugin.name], on_call=on_call)
                for hook, facts in HOOK_FACTS.items()
                if facts.outcomes and hook in plugin.implementations
            }
            for plugin in registry
        }
        self._sites: list[PluginSite] = []
        self._chains = NamespaceChains(registry, self.callers)
        self.version_hook = VersionHook(self.callers, self.dependencies)
        self.lister_hook = ListerHook(self._chains, self.dependencies)
        self.mask_hook = MaskHook(self._chains, self.dependencies, self.version_hook)
        self.describe_hook = DescribeHook(self._chains, self.callers)
        self.observers = Observers(registry, self.callers)
        self.has_gates = AUTHORIZE in self._chains.hooks
        self.has_observers = bool(len(self.observers))
        self._authenticators = tuple(
            hooks[AUTHENTICATE] for hooks in self.callers.values() if AUTHENTICATE in hooks
        )
        self._has_masks = VISIBLE in self._chains.hooks
        self._has_listers = LIST in self._chains.hooks
        #: Whether some plugin authorizes, lists or masks, in any namespaces.
        self.shapes_answers = any(HOOK_FACTS[hook].shapes_answers for hook in self._chains.hooks)
        self._claims: Counter[str] = Counter()
        self._logged_claims: set[tuple[str, str]] = set()
        self._started: list[LoadedPlugin] = []
        #: The change logs that plugins have offered, in the order of the chain.
        self.change_logs: tuple[ChangeLog, ...] = ()
        self._problems: dict[str, tuple[str, ...]] = {}
        #: Messages about the plugins that failed to put settings in force, by plugin.
        self._in_part: dict[str, str] = {}
        self._background_tasks = {
            plugin.name: BackgroundTasks(plugin.name, self._runners[plugin.name].abandoned)
            for plugin in registry
        }

    def concerned(self, namespace: NamespaceName) -> bool:
        """Whether some plugin authorizes, lists or masks in this namespace."""
        return self.shapes_answers and self._chains.of(namespace).shapes_answers

    def gates(self, namespace: NamespaceName) -> bool:
        """Whether some plugin authorizes actions on this namespace."""
        return self.has_gates and bool(self._chains.of(namespace).of(AUTHORIZE))

    def masks(self, namespace: NamespaceName) -> bool:
        """Whether some plugin masks listings of this namespace."""
        return self._has_masks and bool(self._chains.of(namespace).of(VISIBLE))

    def lists(self, namespace: NamespaceName) -> bool:
        """Whether some plugin is asked to list this namespace."""
        return self._has_listers and self._chains.of(namespace).lists

    def depends_on(self, namespace: NamespaceName) -> frozenset[str]:
        """The dependencies of all plugins that list this namespace or mask its listings."""
        if not self.concerned(namespace):
            return frozenset()
        return self.lister_hook.depends_on(namespace) | self.mask_hook.depends_on(namespace)

    def properties_matter_to(self, namespace: NamespaceName) -> list[str]:
        """The plugins whose answers about this namespace depend on properties of the request, or may."""
        names = self.lister_hook.plugins(namespace) + self.mask_hook.plugins(namespace)
        return [
            name for name in dict.fromkeys(names) if any(map(is_of_properties, self.dependencies.of(name)))
        ]

    def selecting_properties(self, namespace: NamespaceName) -> frozenset[str] | None:
        """The properties by which plugins select topics of this namespace; ``None`` for any.

        A plugin that depends on properties as a whole selects by the keys of its setting ``property_keys``, if it has
        one.
        """
        keys: set[str] = set()
        for name in self.properties_matter_to(namespace):
            words, plugin = self.dependencies.of(name), self.registry[name]
            if "properties" not in words:
                keys.update(word.removeprefix(PROPERTY) for word in words if word.startswith(PROPERTY))
            elif plugin.property_keys is None or "broker_core_depends_on" not in plugin.implementations:
                return None
            else:
                keys |= plugin.property_keys
        return frozenset(keys)

    async def authorize(self, access: Access, steps: list[ChainStep] | None = None) -> None:
        """Ask all gates of the namespace. ``steps`` gets one entry for each that was asked.

        Raises :exc:`~broker_core.plugins.failures.RefusedByPlugin` if one refuses, and
        :exc:`~broker_core.plugins.failures.PluginFailed` if one fails.
        """
        if self.has_gates:
            await pass_gates(self._chains.of(access.namespace).of(AUTHORIZE), access, steps)

    @property
    def authenticates(self) -> bool:
        """Whether some plugin authenticates clients."""
        return bool(self._authenticators)

    @property
    def listers(self) -> list[str]:
        """The names of the plugins that list topics, in the order of the chain."""
        return [plugin.name for plugin in self.registry if plugin.lists]

    async def authenticate(self, method: str, data: bytes, peer: Peer) -> Principal | None:
        """Ask the plugins for the principal of a client; ``None`` if none knows it.

        Raises :exc:`~broker_core.access.authentication.AuthenticationFailed` if one fails.
        """
        return await authenticated_by(self._authenticators, method, data, peer)

    def false_claim(self, plugin: str, topics: int, event: str) -> None:
        """Count that a plugin claimed something wrong of the ``topics`` names that it gave, and log ``event`` once."""
        if (plugin, event) not in self._logged_claims:
            self._logged_claims.add((plugin, event))
            log.warning(event, plugin=plugin, topics=topics)
        self._claims[plugin] += 1

    def claim_mismatches(self) -> dict[str, int]:
        """For metrics: how often each plugin wrongly claimed to have filtered, or gave a wrong hash."""
        return dict(self._claims)

    def outcomes(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """For metrics: the possible outcomes of a call of each plugin, by hook without its prefix."""
        return {
            name: {caller.hook: (*HOOK_FACTS[hook].outcomes, ERROR) for hook, caller in callers.items()}
            for name, callers in self.callers.items()
        }

    async def startup(self, handle: Callable[[str], object] = lambda _: None) -> None:
        """Call the ``broker_core_startup`` of all plugins in order, and ask each for its change log.

        ``handle(name)`` is the broker as that plugin sees it. If one fails, the started ones are shut down again, and a
        :exc:`~broker_core.plugins.failures.PluginLoadError` names it.
        """
        for warning in self.registry.warnings:
            log.warning(warning)
        for plugin in self.registry:
            runner = self._runners[plugin.name]
            try:
                await start_up(plugin, handle(plugin.name), runner)
                self._started.append(plugin)
                offered = await offered_log(plugin, runner)
            except BaseException:
                await self.shutdown()
                raise
            if offered is not None:
                self.change_logs = (*self.change_logs, offered)

    def http_sites(self) -> list[PluginSite]:
        """The sites that plugins serve over HTTP. Raises :exc:`~broker_core.plugins.failures.PluginLoadError`."""
        self._sites = plugin_sites(self.registry, self._runners)
        return self._sites

    def _callers_of(self, plugin: str) -> list[HookCaller]:
        """The callers of a plugin's hooks, and of the routes of its site."""
        routes = (site.callers.values() for site in self._sites if site.plugin == plugin)
        return [*self.callers[plugin].values(), *chain.from_iterable(routes)]

    @property
    def live_keys(self) -> dict[str, frozenset[str]]:
        """Live keys of each plugin's table."""
        return {plugin.name: plugin.live for plugin in self.registry}

    async def prepare_settings(
        self, tables: Mapping[str, tuple[Mapping[str, object], Mapping[str, object]]]
    ) -> Callable[[], None]:
        """Check tables: for each plugin, the one that was read, and the one that is to be in force now.

        The returned function puts the latter in force. Raises :exc:`~broker_core.plugins.failures.PluginLoadError`.
        """
        ready: list[Callable[[], None]] = []
        for plugin in self.registry:
            if plugin.name in tables:
                read, in_force = tables[plugin.name]
                await asyncio.to_thread(plugin.options_of, read)
                options = await asyncio.to_thread(plugin.options_of, in_force)
                if plugin.live and options != plugin.options:
                    put = await reloaded(plugin, options, self._runners[plugin.name])
                    ready.append(partial(self._put_in_force, plugin, options, put))

        def put_in_force() -> None:
            for each in ready:
                each()

        return put_in_force

    def _put_in_force(
        self, plugin: LoadedPlugin, options: PluginOptions, put: Callable[[], object] | None
    ) -> None:
        plugin.options = options
        self._in_part.pop(plugin.name, None)
        try:
            if put is not None:
                put()
        except (Exception, SystemExit) as error:  # other plugins have theirs already: there is no way back
            log.exception("plugin failed to put its settings in force", plugin=plugin.name)
            self._in_part[plugin.name] = (
                f"failed to put its settings in force ({type(error).__name__}): restart the server"
            )

    async def shutdown(self) -> None:
        """Call the ``broker_core_shutdown`` of all started plugins in reverse order; failures are only logged."""
        await self.observers.close(timeout=1.0)
        self.change_logs = ()
        # Before any plugin is shut down whose objects they may use.
        await asyncio.gather(*(tasks.close() for tasks in self._background_tasks.values()))
        while self._started:
            plugin = self._started.pop()
            await shut_down(plugin, self._runners[plugin.name])
        await asyncio.gather(*(runner.close() for runner in self._runners.values()))

    def background_tasks(self, plugin: str) -> BackgroundTasks:
        """The background tasks of a plugin."""
        return self._background_tasks[plugin]

    def report_problems(self, plugin: str, problems: Collection[str]) -> None:
        """Replace the problems that a plugin reports.

        When all problems are gone, the plugin's breakers close: the next call is made.
        """
        before = self._problems.get(plugin)
        self._problems[plugin] = tuple(map(without_credentials, problems))
        if before and not problems:
            for caller in self._callers_of(plugin):
                caller.breaker.recovered()

    def describe(self) -> list[dict[str, Any]]:
        """The registry's description with the state of each plugin: ``closed``, ``half_open`` or ``open`` breaker.

        Or ``error`` if it reports problems itself; these are its ``problems``.
        """
        described = self.registry.describe()
        for entry in described:
            callers = self._callers_of(entry["name"])
            runner = self._runners[entry["name"]]
            worst = max((caller.breaker.state for caller in callers), default=None)
            if worst:
                entry["state"] = f"breaker {worst.name.lower().replace('_', ' ')}"
            tasks = self._background_tasks[entry["name"]]
            entry["problems"] = [*self._problems.get(entry["name"], ()), *tasks.dead]
            if entry["name"] in self._in_part:
                entry["problems"].append(self._in_part[entry["name"]])
            if entry["problems"]:
                entry["state"] = "error"
            entry["calls"] = {caller.hook: caller.describe() for caller in callers}
            entry["threads"] = {"busy": runner.threads.busy, "waiting": runner.threads.waiting}
            entry["abandoned_calls"] = runner.abandoned_calls
            entry["depends_on"] = sorted(self.dependencies.of(entry["name"]))
            entry["tasks"] = tasks.describe()
            entry["claim_mismatches"] = self._claims[entry["name"]]
        return described

    def describe_without_errors(self) -> list[dict[str, Any]]:
        """The description without the texts of errors, which may be confidential."""
        described = self.describe()
        for entry in described:
            for shown in (*entry["calls"].values(), *entry["tasks"]):
                del shown["last_error"]
        return described

    def breaker_states(self) -> dict[str, int]:
        """For metrics: the worst breaker of each plugin; 0 closed, 1 half-open, 2 open."""
        return {
            name: max((int(caller.breaker.state) for caller in self._callers_of(name)), default=0)
            for name in self.callers
        }

    def abandoned_calls(self) -> dict[str, int]:
        """For metrics: the abandoned calls of each plugin."""
        return {name: runner.abandoned_calls for name, runner in self._runners.items()}

    def passed_over(self) -> dict[str, int]:
        """For metrics: failures of each plugin after which the next one was asked."""
        return {
            name: sum(caller.statistics.passed_over for caller in callers.values())
            for name, callers in self.callers.items()
        }

    def loop_times(self) -> dict[tuple[str, str], LoopTime]:
        """For metrics: how long plugins held the event loop, by plugin and hook without its prefix, or task."""
        return {
            (name, caller.hook): caller.loop_time
            for name, callers in self.callers.items()
            for caller in callers.values()
        } | {
            (name, task): loop_time
            for name, tasks in self._background_tasks.items()
            for task, loop_time in tasks.loop_times().items()
        }

    def dropped_outcomes(self) -> dict[str, int]:
        """For metrics: outcomes that each observer was too slow to see."""
        return self.observers.dropped()
