"""The question: which topics of this namespace match, for this asker, and by when."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeAlias

from broker_core.access import Asker
from broker_core.immutable import copied
from broker_core.listing import Page, checked_wants
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api.depends_on import EVERYTHING, key_of
from broker_core.plugin_api.request_lease import UNCOUNTED, Lease, RequestMemory
from broker_core.plugin_api.request_properties import NO_PROPERTIES, Properties
from broker_core.plugin_api.rest_answer import SAME, RestAnswer, Same

__all__ = ["ListingRequest", "Pausing", "RequestServices"]


#: Wraps a function that a plugin awaits, so that its time is not the plugin's.
Pausing: TypeAlias = Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]]


class RequestServices(Protocol):
    """Services of the broker for one call of a plugin, which uses them by the methods of its request."""

    @property
    def memory(self) -> RequestMemory: ...

    def rest(
        self, pattern: str | Same | None, properties: Mapping[str, str] | Same
    ) -> Coroutine[Any, Any, RestAnswer]: ...

    def key(self, pattern: str | Same | None, properties: Mapping[str, str] | Same) -> Hashable: ...

    def pausing(self, pausing: Pausing) -> RequestServices: ...

    @property
    def wrong(self) -> str | None: ...


async def _unlimited(_bytes: int) -> None:
    """Stands in if memory is not counted, as in a test of a plugin that builds its own request."""


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """One question for a listing; immutable. Each plugin of the chain gets a copy of its own.

    ``pattern`` is the compiled pattern with its literal, its ranges and its required substrings, or ``None`` without
    one; ``topics_hash`` the hash that the client holds already; ``properties`` what the client sent, the last of a
    repeated key (they select; they do not authorize); ``deadline`` the end of the time for this answer, on the clock of
    the running event loop (``loop.time()``, seconds).

    ``page`` is the wanted part of the listing, ``None`` for all of it; a lister may leave it to the core. ``wants`` are
    the columns of :class:`~broker_core.listing.details.Details` that are asked for besides the names.
    """

    namespace: NamespaceName
    mode: Mode = Mode.PERSISTENT
    pattern: TopicsPattern | None = None
    topics_hash: str | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: NO_PROPERTIES)
    asker: Asker = field(default_factory=Asker)
    deadline: float = float("inf")
    reserve_bytes: Callable[[int], Awaitable[None]] = field(default=_unlimited, repr=False, compare=False)
    services: RequestServices | None = field(default=None, repr=False, compare=False)
    page: Page | None = None
    wants: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        # Whatever mapping the caller gives: a plugin must not change the properties that the next plugin reads.
        if type(self.properties) is not Properties:
            object.__setattr__(self, "properties", Properties(self.properties))
        if self.wants:
            object.__setattr__(self, "wants", checked_wants(self.wants))

    @property
    def topics_pattern(self) -> str | None:
        """The pattern exactly as the client sent it, scheme included, or ``None``."""
        return None if self.pattern is None else self.pattern.raw

    def pausing(self, pausing: Pausing) -> Self:
        """The request as a plugin gets it: ``pausing`` stops the plugin's clock while it waits for a method of the
        request.
        """
        services = None if self.services is None else self.services.pausing(pausing)
        return copied(self, reserve_bytes=pausing(self.reserve_bytes), services=services)

    async def reserve(self, size: int) -> None:
        """Wait for heap permits of ``size`` bytes in all for this request, if the estimate was too small.

        The waiting is not the plugin's time. Raises :exc:`~broker_core.errors.TooManyRequests` when the permits do not
        come in time; let it pass.
        """
        await self.reserve_bytes(size)

    def lease(self, size: int) -> Lease:
        """Memory of ``size`` bytes on top of the request's other memory: ``async with request.lease(size)``.

        It is given back when the block ends, and with the request at the latest; see :class:`Lease`.
        """
        return Lease(UNCOUNTED if self.services is None else self.services.memory, size)

    def rest(
        self, *, pattern: str | Same | None = SAME, properties: Mapping[str, str] | Same = SAME
    ) -> Coroutine[Any, Any, RestAnswer]:
        """Ask the plugins after this one and then the default lister, and await their answer.

        For ``async`` hooks ``broker_core_list_topics`` only: elsewhere it raises :exc:`RuntimeError`. The question is
        this request, without the hash that the client holds; ``pattern`` (text as a client would send it, or ``None``)
        and ``properties`` take the place of the client's. The answer is checked but not masked, and its details are of
        its topics alone.

        The waiting is not this plugin's time. A failure of the others is final for the request, whatever ``on_failure``
        says, unless the plugin catches it. Four calls at most; the fifth is a :exc:`RuntimeError`, and a failure of the
        plugin though it catches that. All plugins together have 64 calls for one request of a client.
        """
        if self.services is None:
            raise RuntimeError("there is nothing behind this request: no broker has asked it")
        return self.services.rest(pattern, properties)

    def key(
        self, *, pattern: str | Same | None = SAME, properties: Mapping[str, str] | Same = SAME
    ) -> Hashable:
        """The key by which to keep the answer of ``rest(...)`` with the same arguments: equal keys, equal answers.

        An answer of :meth:`rest` that is kept under less shows one client what is for another. The key has the fields
        that this plugin, all plugins after it and the default lister declare; the namespace and the mode; how often
        ``broker.topics_changed`` was called for the namespace; not the client's hash. Take it before ``rest``: a change
        meanwhile makes another key.
        """
        if self.services is None:
            return key_of(self, EVERYTHING)
        return self.services.key(pattern, properties)
