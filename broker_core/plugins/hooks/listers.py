"""The listers (``broker_core_list_topics``): asked one by one in the operator's order, until one of them answers.

The first success (or ``unchanged``) ends the chain; pass through and ``None`` go on; a failure is an error, goes on, or
is replaced by the plugin's last answer, depending on its ``on_failure``. The results here have the right types. Names
are checked later, as those of all listings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from broker_core.names import NamespaceName
from broker_core.plugin_api import AnswerKind, ListingRequest, RequestServices, TopicListingResult
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.declared_dependencies import DeclaredDependencies
from broker_core.plugins.failures import ChainStep, PluginFailed, RestFailed
from broker_core.plugins.former_answers import LastAnswerKeeper, VersionedAnswerKeeper
from broker_core.plugins.hooks.check_lister_answer import checked_answer, refusal_of
from broker_core.plugins.hooks.versions import ToldVersions, VersionHook
from broker_core.plugins.load.registry import LoadedPlugin
from broker_core.plugins.namespace_chain import NamespaceChains

__all__ = [
    "LIST",
    "NOBODY",
    "Accept",
    "ChainResult",
    "ListerHook",
    "MakeServices",
    "ServicesOfOneCall",
    "skipped_steps",
]

LIST: Final = "broker_core_list_topics"


@dataclass(frozen=True, slots=True)
class ChainResult:
    """The result of the chain. ``answer`` and ``plugin`` are ``None`` if no plugin took the request.

    ``steps`` has one entry for each plugin that lists, asked or not, in the order of the chain; ``accepted`` is the
    result of the caller's ``accept``. A former answer in place of a failed one has only ``accepted``.
    """

    answer: TopicListingResult | None
    plugin: str | None
    steps: tuple[ChainStep, ...]
    accepted: Any = None


NOBODY: Final = ChainResult(None, None, ())
_WITHOUT_TOPICS: Final = (AnswerKind.PASS_THROUGH, AnswerKind.REFUSED)

#: Checks the names that a plugin returned; raises :exc:`~broker_core.errors.ListingFailed` if they are wrong.
Accept: TypeAlias = Callable[[LoadedPlugin, TopicListingResult], Awaitable[Any]]
#: Makes the services for one call of a plugin, from its name and its place in the chain.
MakeServices: TypeAlias = Callable[[str, int], "ServicesOfOneCall"]


class ServicesOfOneCall(RequestServices, Protocol):
    """The broker's services for one call of a plugin."""

    @property
    def rest_requested(self) -> bool:
        """Whether the plugin has asked the rest of the chain."""

    def close(self) -> None:
        """End the services: the call is over."""


class ListerHook:
    """Caller of the plugins that list."""

    def __init__(
        self, chains: NamespaceChains, dependencies: DeclaredDependencies, versions: VersionHook
    ) -> None:
        self._chains = chains
        self._dependencies = dependencies
        self._versions = versions
        self._are_there = LIST in chains.hooks

    def plugins(self, namespace: NamespaceName) -> list[str]:
        """The plugins that are asked to list this namespace."""
        listers = self._chains.of(namespace).listers
        return [name for name, caller in listers if caller is not None]

    def depends_on(self, namespace: NamespaceName, first: int = 0) -> frozenset[str]:
        """All dependencies of the answers of plugins from number ``first`` of the chain on."""
        listers = self._chains.of(namespace).listers[first:]
        return frozenset().union(
            *(self._dependencies.of(name) for name, caller in listers if caller is not None)
        )

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
        """Walk the chain from its plugin ``first`` on, or ``only`` the plugins of these names in it.

        An answer that ``accept`` refuses is a failure of its plugin.

        If ``keeps`` has the answer of a plugin at the version that it gives, the plugin is not asked; ``versions`` gets
        the version of each. Raises :exc:`~broker_core.plugins.failures.RefusedByPlugin` if a plugin refuses;
        :exc:`PluginFailed` if one fails whose ``on_failure`` is ``error``, or ``stale`` while ``memory`` has no answer
        of it. Errors that the broker itself raises to a plugin, and that it lets pass, are final: the
        :exc:`~broker_core.errors.TooManyRequests` of ``request.reserve()``, the :exc:`RestFailed` of
        ``request.rest()``.
        """
        if not self._are_there:
            return NOBODY
        chain = self._chains.of(request.namespace)
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
                version = await self._versions.of(request, name, versions) if name in self._versions else None
                found = None
                if version is not None and keeps is not None:
                    found = keeps.find(name, version)
                    if found is None:
                        seconds = caller.plugin.options.deadline
                        found = await keeps.made_elsewhere(name, version, seconds)
                if found is not None:
                    answer, word, accepted = None, found.word, found.accepted
                else:
                    call = None if services is None else services(name, position)
                    asking = self._ask_one(caller, request, call, accepting)
                    if version is None or keeps is None:
                        answer, word, accepted, _ = await asking
                    else:
                        with keeps.make(name, version) as making:
                            answer, word, accepted, its_own = await asking
                            keeping = its_own and await self._versions.still(request, name, version, answer)
                            making.made(kept=keeping and keeps.keep(name, version, accepted))
            except RestFailed as failure:
                steps.append(ChainStep(name, "error", clock() - started, failure.detail))
                failure.steps = (*steps, *skipped_steps(chain.listers[position + 1 :]))
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
                    failure.steps = (*steps, *skipped_steps(chain.listers[position + 1 :]))
                    raise
                caller.statistics.stale += 1
                steps[-1] = replace(steps[-1], answer=recalled.word, stale=recalled.age)
                answer, word, accepted = None, recalled.word, recalled.accepted
            else:
                why = None if answer is None else answer.why
                step = ChainStep(
                    name, word, clock() - started, kept=found is not None, version=version, why=why
                )
                steps.append(step)
                if memory is not None and word != "refused" and caller.plugin.options.on_failure == "stale":
                    memory.answered(caller.plugin, accepted, started)
            if word == "refused":
                assert answer is not None
                if memory is not None:
                    memory.refused(caller.plugin)
                refusal = refusal_of(name, answer)
                refusal.steps = (*steps, *skipped_steps(chain.listers[position + 1 :]))
                try:
                    raise refusal
                finally:
                    del refusal  # in its own traceback
            if word != "pass_through":
                steps += skipped_steps(chain.listers[position + 1 :])
                return ChainResult(answer, name, tuple(steps), accepted)
        return ChainResult(None, None, tuple(steps))

    async def _ask_one(
        self,
        caller: HookCaller,
        request: ListingRequest,
        call: ServicesOfOneCall | None,
        accepting: Callable[[TopicListingResult], Awaitable[Any]] | None,
    ) -> tuple[TopicListingResult | None, str, Any, bool]:
        """One plugin's answer, the word for it, the accepted result, and whether the topics are the plugin's own."""
        try:
            answer, word, accepted = await caller.call(
                self._dependencies.request_for(request, caller.name, call), checked_answer, accepting
            )
        finally:
            if call is not None:
                call.close()
        return answer, word, accepted, word != "refused" and (call is None or not call.rest_requested)


def accepting_of(accept: Accept, plugin: LoadedPlugin, answer: TopicListingResult) -> Awaitable[Any]:
    """The result of ``accept`` for an answer of ``plugin`` that has topics, or says that they are unchanged."""
    return _nothing() if answer.kind in _WITHOUT_TOPICS else accept(plugin, answer)


async def _nothing() -> None:
    return None


def skipped_steps(listers: Sequence[tuple[str, HookCaller | None]]) -> list[ChainStep]:
    """The steps of listers that were not asked."""
    return [ChainStep(name, "not_asked") for name, _ in listers]
