"""A listing request as plugins get it: namespace, mode, pattern, properties, asker, deadline."""

from __future__ import annotations

from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self, final

from broker_core.access import Asker
from broker_core.immutable import Sealed, copied, seal
from broker_core.listing import Page, checked_wants
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api.depends_on import EVERYTHING, key_of
from broker_core.plugin_api.request_lease import UNCOUNTED, Lease, Pausing, paused_call
from broker_core.plugin_api.request_services import RequestServices
from broker_core.plugin_api.rest_answer import SAME, RestAnswer, Same

__all__ = ["NO_PROPERTIES", "ListingRequest", "Properties"]


@final
class Properties(Sealed, Mapping[str, str]):
    """Text by name, as :class:`types.MappingProxyType` shows a ``dict``, without a way to that ``dict``.

    The proxy hands its ``dict`` to the ``__eq__`` and ``__or__`` of what it is compared and joined with, and so do the
    views of its items and keys; here they get a copy.
    """

    __slots__ = ("_pairs",)

    def __new__(cls, pairs: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> Self:
        properties = object.__new__(cls)
        _put_pairs(properties, dict(pairs))
        return properties

    def __init__(self, pairs: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        """``pairs`` are copied; of a repeated name, the last counts."""

    def __getitem__(self, name: str) -> str:
        return _pairs(self)[name]

    def __contains__(self, name: object) -> bool:
        return name in _pairs(self)

    def __iter__(self) -> Iterator[str]:
        return iter(_pairs(self))

    def __len__(self) -> int:
        return len(_pairs(self))

    def get(self, name: str, default: Any = None) -> Any:
        return _pairs(self).get(name, default)

    def copy(self) -> dict[str, str]:
        """The properties as a new ``dict``."""
        return _pairs(self).copy()

    def keys(self) -> KeysView[str]:
        return self.copy().keys()

    def items(self) -> ItemsView[str, str]:
        return self.copy().items()

    def values(self) -> ValuesView[str]:
        return self.copy().values()

    def __reversed__(self) -> Iterator[str]:
        return reversed(_pairs(self))

    def __or__(self, other: Any) -> Any:
        return self.copy() | (other.copy() if type(other) is Properties else other)

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __reduce__(self) -> tuple[type[Properties], tuple[dict[str, str]]]:  # type: ignore[override]
        return Properties, (self.copy(),)

    def __repr__(self) -> str:
        return repr(self.copy())


_descriptor: Final = seal(Properties, "_pairs")
_put_pairs: Final = _descriptor.__set__
_pairs: Final[Callable[[Properties], dict[str, str]]] = _descriptor.__get__

#: The properties of a request without any.
NO_PROPERTIES: Final = Properties()


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
        return copied(
            self, reserve_bytes=partial(paused_call, pausing, self.reserve_bytes), services=services
        )

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
