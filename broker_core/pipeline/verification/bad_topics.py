"""The failure of a lister or a describer with a wrong answer."""

from __future__ import annotations

from broker_core.errors import Cause, ListingFailed

__all__ = ["bad_topics"]


def bad_topics(what: str, plugin: str | None = None) -> ListingFailed:
    """The fault of an answer, as a verb with its object; the caller puts the plugin's name in front,
    unless ``plugin`` is given.
    """
    return ListingFailed(what, cause=Cause.PLUGIN, reason="bad_topics", plugin=plugin)
