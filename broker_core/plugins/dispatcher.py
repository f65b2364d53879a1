"""Asking the plugins: the chain of listers, the masks, the observers, start and end.

The listers are walked one by one in the operator's order. The first success (or ``unchanged``) ends the chain; pass
through and ``None`` go on; a failure is an error, goes on or is stood in for by the plugin's last answer, as its
``on_failure`` says. Masks are all asked, and ANDed; one that fails is always an error: it must not open the gate.

What is returned here is of the right types. Names are checked where all listings are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any, Final

import structlog

from broker_core.access.access import Access
from broker_core.change_log import ChangeLog
from broker_core.immutable.copies import copied
from broker_core.listing.details import Details
from broker_core.names import NamespaceName
from broker_core.plugin_api.describe_request import DescribeRequest
from broker_core.plugin_api.hookspecs import ListingOutcome
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugins.background_tasks import BackgroundTasks
from broker_core.plugins.call.event_loop_time import LoopTime
from broker_core.plugins.call.hook_caller import CallObserver, HookCaller
from broker_core.plugins.call.plugin_runner import PluginRunner
from broker_core.plugins.declared_dependencies import DeclaredDependencies
from broker_core.plugins.failures import BehindFailed, ChainStep, PluginFailed
from broker_core.plugins.former_answers import LastAnswerKeeper
from broker_core.plugins.hooks.check_lister_answer import checked_answer, refusal_of
from broker_core.plugins.hooks.check_mask import and_masks
from broker_core.plugins.hooks.describers import checked_details
from broker_core.plugins.hooks.gates import pass_gates
from broker_core.plugins.hooks.observers import Observer
from broker_core.plugins.hooks.startup_shutdown import offered_log, shut_down, start_up
from broker_core.plugins.hooks.versions import ToldVersions, VersionHook
from broker_core.plugins.hooks.watched_properties import WatchedProperties
from broker_core.plugins.load.registry import LoadedPlugin, PluginRegistry
from broker_core.plugins.namespace_chain import (
    NOBODY,
    Accept,
    Chain,
    ChainResult,
    MakeServices,
    MaskCheck,
    VersionedAnswerKeeper,
    accepting_of,
    check_mask,
    mask_again,
    not_asked,
)
from broker_core.redaction.credentials import without_credentials

__all__ = ["Dispatcher"]

log = structlog.get_logger(__name__)

_AUTHORIZE: Final = "broker_core_authorize"
_LIST: Final = "broker_core_list_topics"
_DESCRIBE: Final = "broker_core_describe_topics"
_VISIBLE: Final = "broker_core_visible"
_SERVED: Final = "broker_core_listing_served"
_VERSION: Final = "broker_core_version"

#: Namespaces whose part of the chain is remembered; clients choose namespaces, so this is bounded.
_REMEMBERED: Final = 4096


class Dispatcher:
    """Asks the plugins of one registry. ``on_call`` is told of each call, for metrics.

    ``has_gates``, ``has_listers``, ``has_masks`` and ``has_observers`` are plain attributes: where there is nobody to
    ask, asking costs nothing.
    """

    def __init__(self, registry: PluginRegistry, *, on_call: CallObserver | None = None) -> None:
        self.registry = registry
        self._runners = {plugin.name: PluginRunner(plugin.name) for plugin in registry}
        #: What the answers of each plugin depend on.
        self.dependencies = DeclaredDependencies(registry)
        self.callers: dict[str, dict[str, HookCaller]] = {plugin.name: {} for plugin in registry}
        for plugin in registry:
            for hook in (_AUTHORIZE, _LIST, _DESCRIBE, _VISIBLE, _VERSION, _SERVED):
                if hook in plugin.implementations:
                    self.callers[plugin.name][hook] = HookCaller(
                        plugin, hook, self._runners[plugin.name], on_call=on_call
                    )
        self.versions = VersionHook(self.callers, self.dependencies)
        self._observers = [
            (plugin, Observer(self.callers[plugin.name][_SERVED]))
            for plugin in registry
            if _SERVED in plugin.implementations
        ]
        self.has_gates = any(_AUTHORIZE in plugin.implementations for plugin in registry)
        self.has_listers = any(_LIST in plugin.implementations for plugin in registry)
        self.has_describers = self.has_listers or any(
            _DESCRIBE in plugin.implementations for plugin in registry
        )
        self.has_masks = any(_VISIBLE in plugin.implementations for plugin in registry)
        self.has_observers = bool(self._observers)
        self._concerned = self.has_gates or self.has_listers or self.has_masks
        self._chains: dict[NamespaceName, Chain] = {}
        self._claims: dict[str, int] = {}
        self._false_filters: set[str] = set()  # whose false claims were logged
        self._wrong_hashes: set[str] = set()
        self._started: list[LoadedPlugin] = []
        #: Those that plugins have offered up to now, in the order of the chain.
        self.change_logs: tuple[ChangeLog, ...] = ()
        #: Told what each mask answered; what it raises is the answer. For tests of plugins.
        self.check_mask: MaskCheck | None = None
        self._problems: dict[str, tuple[str, ...]] = {}
        self._background_tasks = {
            plugin.name: BackgroundTasks(plugin.name, self._runners[plugin.name].abandoned)
            for plugin in registry
        }

    def concerned(self, namespace: NamespaceName) -> bool:
        """Whether some plugin has a say about who gets what of this namespace: authorizes, lists or masks."""
        if not self._concerned:
            return False
        chain = self._chain(namespace)
        return bool(chain.lists or chain.gates or chain.masks)

    def gates(self, namespace: NamespaceName) -> bool:
        """Whether some plugin authorizes what is done with this namespace."""
        return self.has_gates and bool(self._chain(namespace).gates)

    def masks(self, namespace: NamespaceName) -> bool:
        """Whether some plugin masks listings of this namespace."""
        return self.has_masks and bool(self._chain(namespace).masks)

    def lists(self, namespace: NamespaceName) -> bool:
        """Whether some plugin is asked to list this namespace."""
        return self.has_listers and self._chain(namespace).lists

    def describers(self, namespace: NamespaceName) -> tuple[tuple[LoadedPlugin, bool], ...]:
        """The plugins that know topics of a namespace, in the order of the chain; false for one that only lists."""
        if not self.has_describers:
            return ()
        return tuple((plugin, caller is not None) for plugin, caller in self._chain(namespace).describers)

    async def details(
        self, plugin: str, request: DescribeRequest, accept: Callable[[Details], Awaitable[Any]]
    ) -> Any | None:
        """What ``accept`` makes of the details that a plugin gives; ``None`` where it passes.

        So does one that fails and whose ``on_failure`` is ``next``. Raises :exc:`PluginFailed` for others.
        """
        caller = self.callers[plugin][_DESCRIBE]
        try:
            _, _, accepted = await caller.call(request, checked_details, accept)
        except PluginFailed:
            if caller.plugin.options.on_failure != "next":
                raise
            caller.statistics.passed_over += 1
            return None
        return accepted

    def depends_on_from(self, namespace: NamespaceName, first: int) -> frozenset[str]:
        """What the answers of the plugins from number ``first`` of the chain on depend on, all together."""
        listers = self._chain(namespace).listers[first:]
        return frozenset().union(
            *(self.dependencies.of(name) for name, caller in listers if caller is not None)
        )

    async def authorize(self, access: Access, steps: list[ChainStep] | None = None) -> None:
        """Ask all gates of the namespace. ``steps`` gets one entry for each that was asked.

        Raises :exc:`RefusedByPlugin` where one refuses, :exc:`PluginFailed` with the cause ``DENIED`` where one fails.
        """
        if self.has_gates:
            await pass_gates(self._chain(access.namespace).gates, access, steps)

    async def ask(
        self,
        request: ListingRequest,
        accept: Accept | None = None,
        memory: LastAnswerKeeper | None = None,
        *,
        only: Collection[str] | None = None,
        first: int = 0,
        services: MakeServices | None = None,
        keeps: VersionedAnswerKeeper | None = None,
        versions: ToldVersions | None = None,
    ) -> ChainResult:
        """Walk the chain from its plugin ``first`` on, or of it ``only`` the plugins of these names.

        An answer that ``accept`` refuses is a failure of its plugin.
        Where ``keeps`` has the answer of a plugin at the version that it tells, the plugin is not asked; ``versions``
        gets what each tells. Raises :exc:`~broker_core.plugins.failures.RefusedByPlugin` where a plugin refuses;
        :exc:`PluginFailed` where one fails whose ``on_failure`` is ``error``, or ``stale`` while ``memory`` has no
        answer of it. What the broker itself raises to a plugin that lets it pass is final: the
        :exc:`TooManyRequests` of ``request.reserve()``, the :exc:`BehindFailed` of ``request.rest()``.
        """
        if not self.has_listers:
            return NOBODY
        chain = self._chain(request.namespace)
        if chain.masks and request.topics_hash is not None:
            # What a mask takes away, the plugin's "unchanged" could not know.
            request = replace(request, topics_hash=None)
        clock = asyncio.get_running_loop().time
        steps: list[ChainStep] = []
        versions = {} if versions is None else versions
        for position, (name, caller) in enumerate(chain.listers[first:], first):
            if caller is None or (only is not None and name not in only):
                steps.append(ChainStep(name, "not_asked"))
                continue
            started = clock()
            accepting = partial(accepting_of, accept, caller.plugin) if accept is not None else None
            try:
                version = await self.versions.of(request, name, versions) if name in self.versions else None
                found = None if version is None or keeps is None else keeps.find(name, version)
                if found is not None:
                    kept, answer, word, accepted = True, None, found.word, found.accepted
                else:
                    kept, call = False, None if services is None else services(name, position)
                    try:
                        answer, word, accepted = await caller.call(
                            self.dependencies.asked(request, name, call), checked_answer, accepting
                        )
                    finally:
                        if call is not None:
                            call.close()
                    its_own = word != "refused" and (call is None or not call.asked)
                    if version is not None and keeps is not None and its_own:
                        if await self.versions.still(request, name, version, answer):
                            keeps.keep(name, version, accepted)
            except BehindFailed as failure:
                steps.append(ChainStep(name, "error", clock() - started, failure.detail))
                failure.steps = (*steps, *not_asked(chain.listers[position + 1 :]))
                raise
            except PluginFailed as failure:
                steps.append(ChainStep(name, "error", clock() - started, failure.detail))
                on_failure = caller.plugin.options.on_failure
                if on_failure == "next":
                    caller.statistics.passed_over += 1
                    continue
                recalled = None
                if on_failure == "stale" and memory is not None:
                    recalled = memory.recalled(caller.plugin, request.topics_hash, clock())
                if recalled is None:
                    failure.steps = (*steps, *not_asked(chain.listers[position + 1 :]))
                    raise
                caller.statistics.stale += 1
                steps[-1] = replace(steps[-1], answer=recalled.word, stale=recalled.age)
                answer, word, accepted = None, recalled.word, recalled.accepted
            else:
                steps.append(ChainStep(name, word, clock() - started, kept=kept, version=version))
                if memory is not None and word != "refused" and caller.plugin.options.on_failure == "stale":
                    memory.answered(caller.plugin, accepted, started)
            if word == "refused":
                assert answer is not None
                if memory is not None:
                    memory.refused(caller.plugin)
                refusal = refusal_of(name, answer)
                refusal.steps = (*steps, *not_asked(chain.listers[position + 1 :]))
                try:
                    raise refusal
                finally:
                    del refusal  # in its own traceback
            if word != "pass_through":
                steps += not_asked(chain.listers[position + 1 :])
                return ChainResult(answer, name, tuple(steps), accepted)
        return ChainResult(None, None, tuple(steps))

    async def mask_versions(self, request: ListingRequest, told: ToldVersions) -> tuple[str, ...] | None:
        """The versions of all masks of this namespace; ``None`` where one of them tells none.

        Raises :exc:`PluginFailed` for any failure, as :meth:`visible` does.
        """
        return await self.versions.of_all(request, self.masking(request.namespace), told)

    def masking(self, namespace: NamespaceName) -> list[str]:
        """The plugins that mask listings of this namespace."""
        return [caller.name for caller in self._chain(namespace).masks]

    def mask_words(self, namespace: NamespaceName) -> frozenset[str]:
        """What the masks of this namespace depend on, all together."""
        return frozenset().union(*(self.dependencies.of(name) for name in self.masking(namespace)))

    async def visible(
        self,
        request: ListingRequest,
        topics: Any,
        *,
        steps: list[ChainStep] | None = None,
        by_name: bool = False,
    ) -> Any | None:
        """The masks of all plugins for this namespace, ANDed; ``None`` where everything is visible.

        ``topics`` is an Arrow column of full names, the mask an Arrow boolean array of the same length. ``steps``
        gets one entry for each plugin that was asked. ``by_name`` is for a question that has no properties (a lookup):
        only masks that do not depend on them say anything then. Raises :exc:`PluginFailed` for any failure.
        """
        if not self.has_masks or not len(topics):
            return None
        length = len(topics)
        clock = asyncio.get_running_loop().time
        mask: Any | None = None
        for caller in self._chain(request.namespace).masks:
            watch = WatchedProperties(caller.plugin) if by_name else None
            if watch is not None:
                if watch.depends:
                    continue
                request = copied(request, properties=watch.properties)
            started = clock()
            try:
                asked = self.dependencies.asked(request, caller.name)
                own, _, _ = await caller.call(asked, partial(check_mask, length), topics=topics)
            except PluginFailed as failure:
                failure.steps = (ChainStep(caller.name, "error", clock() - started, failure.detail),)
                if steps is not None:
                    steps += failure.steps
                raise
            if watch is not None and watch.depends:
                continue
            if self.check_mask is not None:
                await self.check_mask(caller.name, topics, own, partial(mask_again, caller, request))
            mask = and_masks(mask, own)
            if steps is not None:
                steps.append(ChainStep(caller.name, "mask", clock() - started))
        return mask

    def listing_served(self, request: ListingRequest, outcome: ListingOutcome) -> None:
        """Tell the observers; returns at once."""
        for plugin, observer in self._observers:
            if plugin.options.covers(request.namespace):
                observer.tell(request, outcome)

    def claim_mismatch(self, plugin: str, topics: int) -> None:
        """A plugin said that it had filtered, and ``topics`` of its names do not match: counted, and logged once."""
        if plugin not in self._false_filters:
            self._false_filters.add(plugin)
            log.warning(
                "plugin says that it filtered, and did not; the server filters", plugin=plugin, topics=topics
            )
        self._claims[plugin] = self._claims.get(plugin, 0) + 1

    def hash_mismatch(self, plugin: str, topics: int) -> None:
        """A plugin gave a hash that is not that of its ``topics`` names: counted as a false claim, and logged once."""
        if plugin not in self._wrong_hashes:
            log.warning(
                "plugin gave a wrong topics hash; the server computes it", plugin=plugin, topics=topics
            )
            self._wrong_hashes.add(plugin)
        self._claims[plugin] = self._claims.get(plugin, 0) + 1

    def claim_mismatches(self) -> dict[str, int]:
        """For metrics: how often each plugin said that it had filtered, and had not, or gave a wrong hash."""
        return dict(self._claims)

    def hooks(self) -> dict[str, tuple[str, ...]]:
        """For metrics: the hooks of each plugin that are called for listings."""
        return {
            name: tuple(caller.hook for caller in callers.values()) for name, callers in self.callers.items()
        }

    async def startup(self, handle: Callable[[str], object] = lambda _: None) -> None:
        """Call the ``broker_core_startup`` of all plugins in order, and ask each for its change log.

        ``handle(name)`` is the broker as that plugin sees it. Where one fails, those that were started are shut down
        again, and :exc:`~broker_core.plugins.failures.PluginLoadError` names it.
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

    async def shutdown(self) -> None:
        """Call the ``broker_core_shutdown`` of all started plugins in reverse order; failures are only logged."""
        if self._observers:
            await asyncio.gather(*(observer.close(timeout=1.0) for _, observer in self._observers))
        self.change_logs = ()
        # None of what they work with has been shut down yet, in whichever plugin it is.
        await asyncio.gather(*(tasks.close() for tasks in self._background_tasks.values()))
        while self._started:
            plugin = self._started.pop()
            await shut_down(plugin, self._runners[plugin.name])
        await asyncio.gather(*(runner.close() for runner in self._runners.values()))

    def background_tasks(self, plugin: str) -> BackgroundTasks:
        """What a plugin lets run beside its hooks."""
        return self._background_tasks[plugin]

    def report_problems(self, plugin: str, problems: Collection[str]) -> None:
        """What a plugin says is wrong with what it works on, in place of what it said before.

        Where all of it has gone, nobody waits for the plugin's breakers: the next call is made.
        """
        before = self._problems.get(plugin)
        self._problems[plugin] = tuple(map(without_credentials, problems))
        if before and not problems:
            for caller in self.callers[plugin].values():
                caller.breaker.recovered()

    def describe(self) -> list[dict[str, Any]]:
        """The registry's description with the state of each plugin: ``closed``, ``half_open`` or ``open`` breaker.

        Or ``error`` where it reports problems itself; these are its ``problems``.
        """
        described = self.registry.describe()
        for entry in described:
            callers = self.callers[entry["name"]]
            runner = self._runners[entry["name"]]
            worst = max((caller.breaker.state for caller in callers.values()), default=None)
            if worst:
                entry["state"] = f"breaker {worst.name.lower().replace('_', ' ')}"
            tasks = self._background_tasks[entry["name"]]
            entry["problems"] = [*self._problems.get(entry["name"], ()), *tasks.dead]
            if entry["problems"]:
                entry["state"] = "error"
            entry["calls"] = {caller.hook: caller.describe() for caller in callers.values()}
            entry["threads"] = {"busy": runner.threads.busy, "waiting": runner.threads.waiting}
            entry["abandoned_calls"] = runner.abandoned_calls
            entry["depends_on"] = sorted(self.dependencies.of(entry["name"]))
            entry["tasks"] = tasks.describe()
            entry["claim_mismatches"] = self._claims.get(entry["name"], 0)
        return described

    def describe_without_errors(self) -> list[dict[str, Any]]:
        """The same without the texts of errors, which may hold what is not everybody's business."""
        described = self.describe()
        for entry in described:
            for told in (*entry["calls"].values(), *entry["tasks"]):
                del told["last_error"]
        return described

    def breaker_states(self) -> dict[str, int]:
        """For metrics: the worst breaker of each plugin; 0 closed, 1 half-open, 2 open."""
        return {
            name: max((int(caller.breaker.state) for caller in callers.values()), default=0)
            for name, callers in self.callers.items()
        }

    def abandoned_calls(self) -> dict[str, int]:
        """For metrics: calls of each plugin that still run though nobody waits for them any more."""
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
        return {plugin.name: observer.dropped for plugin, observer in self._observers}

    def _chain(self, namespace: NamespaceName) -> Chain:
        chain = self._chains.get(namespace)
        if chain is None:
            if len(self._chains) >= _REMEMBERED:
                self._chains.clear()
            chain = self._chains[namespace] = self._chain_for(namespace)
        return chain

    def _chain_for(self, namespace: NamespaceName) -> Chain:
        listers: list[tuple[str, HookCaller | None]] = []
        describers: list[tuple[LoadedPlugin, HookCaller | None]] = []
        masks = []
        gates = []
        for plugin in self.registry:
            callers = self.callers[plugin.name]
            covers = plugin.options.covers(namespace)
            if _LIST in callers:
                listers.append((plugin.name, callers[_LIST] if covers else None))
            if covers and (_LIST in callers or _DESCRIBE in callers):
                describers.append((plugin, callers.get(_DESCRIBE)))
            if _VISIBLE in callers and covers:
                masks.append(callers[_VISIBLE])
            if _AUTHORIZE in callers and covers:
                gates.append(callers[_AUTHORIZE])
        return Chain(tuple(listers), tuple(describers), tuple(masks), tuple(gates))
