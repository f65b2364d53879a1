"""The broker's services for one call of a plugin: memory, keys, and the rest of the chain (``request.rest()``)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from broker_core.access import Asker
from broker_core.concurrency import running_loop
from broker_core.errors import Cause, ListingFailed
from broker_core.immutable import copied
from broker_core.names import Mode, NamespaceName
from broker_core.plugin_api.depends_on import PROPERTY, KeyedQuestion, key_of
from broker_core.plugin_api.request_lease import PausedMemory, Pausing, RequestMemory
from broker_core.plugin_api.rest_answer import RestAnswer, Same

__all__ = ["ALL_CALLS", "CALLS", "RequestServices", "RestCall"]

#: How often one call of a plugin may ask the rest of the chain.
CALLS: Final = 4
#: How often all plugins together may for one request of a client: each plugin of a row multiplies the questions of the
#: ones before it.
ALL_CALLS: Final = 64

#: Asks the rest of the chain after a plugin.
RestCall: TypeAlias = Callable[[str | Same | None, Mapping[str, str] | Same], Awaitable[RestAnswer]]


@dataclass(frozen=True, slots=True)
class _RestQuestion:
    """The fields that a key is made of, if the plugin replaced the pattern or the properties."""

    namespace: NamespaceName
    mode: Mode
    topics_pattern: str | None
    properties: Mapping[str, str]
    asker: Asker


@dataclass(slots=True)
class _RestCalls:
    """The number of questions to the rest in one call of a plugin, and the questions that still run."""

    count: int = 0
    over: bool = False
    wrong: str | None = None
    running: set[asyncio.Task[RestAnswer]] = field(default_factory=set)


@dataclass(slots=True)  # not frozen: that takes three times as long to make, for each call
class RequestServices:
    """The services for one call of one plugin; it uses them by the methods of its request.

    ``ask_rest`` asks the rest of the chain, ``None`` if the hook is not ``broker_core_list_topics``; ``words`` are what
    the rest and the plugin itself depend on.
    """

    request: KeyedQuestion
    plugin: str
    held: RequestMemory
    words: Callable[[], Collection[str]]
    ask_rest: RestCall | None
    #: Called with what the answer depends on because of the call that begins.
    on_call: Callable[[Collection[str]], object]
    calls: _RestCalls = field(default_factory=_RestCalls)
    #: A mark that differs after each notice of changed topics (``topics_changed``).
    mark: Callable[[], Hashable] = tuple
    #: One entry for each call of all plugins, shared by the calls of one request of a client.
    all_calls: list[str] = field(default_factory=list)
    #: Stops the clock of the plugin while it waits for a service.
    waits: Pausing | None = None

    @property
    def wrong(self) -> str | None:
        """The plugin's wrong use of these services, even if it caught the error."""
        return self.calls.wrong

    @property
    def memory(self) -> RequestMemory:
        """The request's memory."""
        return self.held if self.waits is None else PausedMemory(self.held, self.waits)

    @property
    def rest_requested(self) -> bool:
        """Whether the plugin has asked for the rest."""
        return self.calls.count > 0

    def rest(
        self, pattern: str | Same | None, properties: Mapping[str, str] | Same
    ) -> Coroutine[Any, Any, RestAnswer]:
        """Listing of the rest of the chain, for :meth:`ListingRequest.rest`. A wrong call raises at once."""
        self._begin(pattern, properties)
        run: Any = self._run if self.waits is None else self.waits(self._run)
        return cast("Coroutine[Any, Any, RestAnswer]", run(pattern, properties))

    def _begin(self, pattern: str | Same | None, properties: Mapping[str, str] | Same) -> None:
        """Check and count a call."""
        if self.ask_rest is None:
            raise RuntimeError("request.rest() is for broker_core_list_topics only")
        if running_loop() is not self.held.loop:
            raise RuntimeError(
                "request.rest() is for async hooks: write `async def broker_core_list_topics`, "
                "which runs on the broker's event loop"
            )
        if self.calls.over:
            raise RuntimeError("request.rest() came too late: the call of the plugin is over")
        _check(pattern, properties)
        if self.calls.count >= CALLS:
            self.calls.wrong = f"request.rest() was called more than {CALLS} times for one request"
            raise RuntimeError(self.calls.wrong)
        if len(self.all_calls) >= ALL_CALLS:
            # It may be the fault of the plugins before this one.
            raise ListingFailed(
                f"request.rest() was called more than {ALL_CALLS} times by all plugins for one request",
                cause=Cause.PLUGIN,
                counts=False,
            )
        self.calls.count += 1
        self.all_calls.append(self.plugin)
        self.on_call(self._words_of(pattern, properties))

    def key(self, pattern: str | Same | None, properties: Mapping[str, str] | Same) -> Hashable:
        """Key of the plugin's own cache, for :meth:`ListingRequest.key`."""
        _check(pattern, properties)
        request = self.request
        rest_requested = _RestQuestion(
            request.namespace,
            request.mode,
            request.topics_pattern if isinstance(pattern, Same) else pattern,
            request.properties if isinstance(properties, Same) else dict(properties),
            request.asker,
        )
        # The rest's answer is filtered by the pattern, whatever it depends on.
        return key_of(rest_requested, {*self.words(), "pattern"}, self.plugin, self.mark())

    def pausing(self, pausing: Pausing) -> RequestServices:
        """The services of one call of a plugin: its waits for them are not its time."""
        return copied(self, waits=pausing)

    def close(self) -> None:
        """End the call: questions that it has begun and not awaited end too."""
        self.calls.over = True
        for task in list(self.calls.running):
            task.cancel()

    async def _run(self, pattern: str | Same | None, properties: Mapping[str, str] | Same) -> RestAnswer:
        assert self.ask_rest is not None
        # In a task of its own: the steps of the core are not the plugin's time on the event loop.
        work: Any = self.ask_rest(pattern, properties)
        task: asyncio.Task[RestAnswer] = asyncio.get_running_loop().create_task(work)
        self.calls.running.add(task)
        task.add_done_callback(self.calls.running.discard)
        return await task

    def _words_of(self, pattern: str | Same | None, properties: Mapping[str, str] | Same) -> frozenset[str]:
        """The words of what the plugin's answer depends on because of this call."""
        words = {*self.words(), "pattern"}
        if pattern is None:  # the same whatever the client asks
            words.discard("pattern")
        if not isinstance(properties, Same) and not properties:
            words = {word for word in words if word != "properties" and not word.startswith(PROPERTY)}
        return frozenset(words)


def _check(pattern: object, properties: object) -> None:
    if not isinstance(pattern, str | Same | None):
        raise TypeError(f"pattern must be text, None or SAME, not {type(pattern).__name__}")
    if isinstance(properties, Same):
        return
    if not isinstance(properties, Mapping):
        raise TypeError(f"properties must be a mapping or SAME, not {type(properties).__name__}")
    if not all(isinstance(name, str) and isinstance(value, str) for name, value in properties.items()):
        raise TypeError("properties must be strings by string")
