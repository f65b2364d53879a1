"""The key of a plugin's answer: everything that shaped it, the asker included, so that nothing crosses principals."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from broker_core.listing_request import ListingRequest
from broker_core.plugins import LoadedPlugin

__all__ = ["AnswerKey", "answer_key"]


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What an answer of one plugin depends on; ``text`` is about how many bytes of the client's text it holds."""

    parts: tuple[Hashable, ...]
    text: int = field(compare=False)


def answer_key(plugin: LoadedPlugin, request: ListingRequest, *, filtered: bool = False) -> AnswerKey:
    """The key by what the plugin says that it depends on (``broker_core_depends_on``); all there is, by default.

    An answer that the plugin calls ``filtered`` depends on the pattern, whatever the plugin says.
    """
    by_pattern = filtered or "pattern" in plugin.depends_on
    parts = tuple(_dependence(plugin, request, by_pattern))
    text = 0
    if by_pattern and request.topics_pattern is not None:
        text += len(request.topics_pattern)
    if "properties" in plugin.depends_on:
        text += sum(len(key) + len(value) for key, value in request.properties.items())
    # A character takes up to four bytes, and most take one; each string has its own overhead besides.
    return AnswerKey((plugin.name, request.namespace, request.mode, *parts), 2 * text)


def _dependence(plugin: LoadedPlugin, request: ListingRequest, by_pattern: bool) -> Iterator[Hashable]:
    asker = request.asker
    if by_pattern:
        yield ("pattern", request.topics_pattern)
    if "properties" in plugin.depends_on:
        yield ("properties", frozenset(request.properties.items()))
    if "principal" in plugin.depends_on:
        yield ("principal", asker.role, asker.original_principal)
    if "client" in plugin.depends_on:
        yield ("client", asker.client_version, asker.host, asker.protocol_version, asker.transport)
