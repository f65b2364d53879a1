"""The key of a plugin's answer: everything that shaped it, the asker included, so that nothing crosses principals."""

from __future__ import annotations

from broker_core.depends_on import AnswerKey, key_of
from broker_core.listing_request import ListingRequest
from broker_core.plugins import LoadedPlugin

__all__ = ["answer_key"]


def answer_key(plugin: LoadedPlugin, request: ListingRequest, *, filtered: bool = False) -> AnswerKey:
    """The key by what the plugin says that it depends on (``broker_core_depends_on``); all there is, by default.

    An answer that the plugin calls ``filtered`` depends on the pattern, whatever the plugin says.
    """
    words = plugin.depends_on | {"pattern"} if filtered else plugin.depends_on
    return key_of(request, words, plugin.name)
