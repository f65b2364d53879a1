"""The chain of plugins for one namespace: who is in it, what walking along it gives, and what an answer may be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from broker_core.plugin_api.listing_request import ListingRequest, RequestServices
from broker_core.plugin_api.listing_result import AnswerKind, TopicListingResult
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.failures import ChainStep
from broker_core.plugins.former_answers import FormerAnswer
from broker_core.plugins.hooks.check_mask import checked_mask
from broker_core.plugins.load.registry import LoadedPlugin

__all__ = [
    "NOBODY",
    "Accept",
    "AsksMask",
    "Chain",
    "ChainResult",
    "MakeServices",
    "MaskCheck",
    "ServicesOfOneCall",
    "VersionedAnswerKeeper",
    "accepting_of",
    "check_mask",
    "mask_again",
    "not_asked",
]


@dataclass(frozen=True, slots=True)
class ChainResult:
    """How the chain ended. ``answer`` and ``plugin`` are ``None`` where nobody took the request.

    ``steps`` has one entry for each plugin that lists, asked or not, in the order of the chain; ``accepted`` is what
    the caller's ``accept`` made of the answer. Of a former answer in place of a failed one there is only ``accepted``.
    """

    answer: TopicListingResult | None
    plugin: str | None
    steps: tuple[ChainStep, ...]
    accepted: Any = None


#: Checks the names that a plugin returned; raises :exc:`~broker_core.errors.ListingFailed` where they are wrong.
Accept: TypeAlias = Callable[[LoadedPlugin, TopicListingResult], Awaitable[Any]]


#: Asks a mask about a column of names, past its statistics and its breaker; the mask of all is ``None``.
AsksMask: TypeAlias = Callable[[Any], Awaitable[Any | None]]
#: Gets the plugin that was asked, the names, what it answered, and how to ask it once more.
MaskCheck: TypeAlias = Callable[[str, Any, Any | None, AsksMask], Awaitable[None]]


class VersionedAnswerKeeper(Protocol):
    """Keeps the answers to one question of plugins that tell their version before the work."""

    def find(self, plugin: str, version: str) -> FormerAnswer | None:
        """The answer at this version; its age says nothing."""

    def keep(self, plugin: str, version: str, accepted: Any) -> None:
        """The plugin answered this at this version, or a later one; ``None`` is a pass through."""


#: Makes what the plugin of a name, at its place of the chain, has in its call.
MakeServices: TypeAlias = Callable[[str, int], "ServicesOfOneCall"]


class ServicesOfOneCall(RequestServices, Protocol):
    """What one call of a plugin has of the broker."""

    @property
    def asked(self) -> bool:
        """Whether the plugin has asked what is behind it."""

    def close(self) -> None:
        """The call is over."""


NOBODY: Final = ChainResult(None, None, ())


@dataclass(frozen=True, slots=True)
class Chain:
    """The plugins that have a say about one namespace."""

    listers: tuple[tuple[str, HookCaller | None], ...]  # None: it lists, but not this namespace
    #: Those that list or describe this namespace; ``None``: it lists only.
    describers: tuple[tuple[LoadedPlugin, HookCaller | None], ...]
    masks: tuple[HookCaller, ...]
    gates: tuple[HookCaller, ...]
    #: Whether one of them lists this namespace.
    lists: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lists", any(caller for _, caller in self.listers))


def accepting_of(accept: Accept, plugin: LoadedPlugin, answer: TopicListingResult) -> Awaitable[Any]:
    """What ``accept`` makes of an answer of ``plugin`` that is no refusal."""
    return _nothing() if answer.kind is AnswerKind.REFUSED else accept(plugin, answer)


async def _nothing() -> None:
    return None


def check_mask(length: int, answer: object, _request: ListingRequest) -> tuple[Any | None, str]:
    mask = checked_mask(answer, length)
    return mask, "pass_through" if mask is None else "mask"


async def mask_again(caller: HookCaller, request: ListingRequest, topics: Any) -> Any | None:
    """What a mask answers when it is asked once more, past its statistics and its breaker."""
    return await caller.uncounted(request, partial(check_mask, len(topics)), topics=topics)


def not_asked(listers: Sequence[tuple[str, HookCaller | None]]) -> list[ChainStep]:
    return [ChainStep(name, "not_asked") for name, _ in listers]
