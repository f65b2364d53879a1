"""Finds fields of requests that plugins read and do not declare (``broker_core_depends_on``).

A cache keys on what a plugin declares. If it reads more, a client may get an answer that was made for another, and no
test of the plugin by itself shows it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

from broker_core.plugin_api import PROPERTY, WORDS, ListingRequest, recorded, undeclared
from broker_core.plugins import Dispatcher

__all__ = ["ReadFields"]


class ReadFields:
    """The fields that the plugins of one server read from now on, in any of their threads."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._declared = dispatcher.dependencies.of
        self._lock = threading.Lock()
        self._read: dict[str, set[str]] = {}
        for plugin, callers in dispatcher.callers.items():
            for caller in callers.values():
                caller.shown = partial(self.shown, plugin)

    def shown(self, plugin: str, question: Any) -> Any:
        """The question, such that reads by the plugin are recorded; only answers to listings are kept."""
        if not isinstance(question, ListingRequest):
            return question
        return recorded(question, partial(self._note, plugin))

    def _note(self, plugin: str, word: str) -> None:
        with self._lock:
            self._read.setdefault(plugin, set()).add(word)

    @property
    def undeclared(self) -> Mapping[str, frozenset[str]]:
        """The fields that each plugin has read and does not declare."""
        with self._lock:
            found = {
                plugin: undeclared(words, self._declared(plugin)) for plugin, words in self._read.items()
            }
        return {plugin: words for plugin, words in found.items() if words}

    def check(self) -> None:
        """Raise :exc:`AssertionError` if there is any."""
        lines = [
            f"plugin {plugin!r} reads {_fields(word)}, and its broker_core_depends_on does not say {word!r}: what is "
            "kept of its answers may be given to others (check_reads of the test kit)"
            for plugin, words in self.undeclared.items()
            for word in sorted(words)
        ]
        if lines:
            raise AssertionError("\n".join(lines))


def _fields(word: str) -> str:
    if word.startswith(PROPERTY):
        return f"request.properties[{word.removeprefix(PROPERTY)!r}]"
    return " or ".join(f"request.{path}" for path in WORDS[word])
