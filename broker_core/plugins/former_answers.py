"""Former answers of plugins, as the chain uses them: by a version, or for ``on_failure = "stale"``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from broker_core.plugins.load.registry import LoadedPlugin

__all__ = ["FormerAnswer", "LastAnswerKeeper", "Making", "VersionedAnswerKeeper"]


@dataclass(frozen=True, slots=True)
class FormerAnswer:
    """A former answer: its word, the result of ``accept`` for it, and its age in seconds."""

    word: str
    accepted: Any
    age: float


class LastAnswerKeeper(Protocol):
    """Keeper of the last answers to one request, for plugins whose ``on_failure`` is ``stale``."""

    def answered(self, plugin: LoadedPlugin, accepted: Any, requested_at: float) -> None:
        """Keep the accepted answer of a plugin, which was asked at that time; ``None`` is a pass through."""

    def refused(self, plugin: LoadedPlugin) -> None:
        """Forget a plugin's former answers: it refused the request."""

    def recalled(self, plugin: LoadedPlugin, topics_hash: str | None, now: float) -> FormerAnswer | None:
        """The last answer, not older than the plugin's ``max_stale``; ``None`` if there is none."""


class VersionedAnswerKeeper(Protocol):
    """Keeper of the answers to one request, for plugins that give their version before the work."""

    def find(self, plugin: str, version: str) -> FormerAnswer | None:
        """The answer at this version; its age has no meaning."""

    def keep(self, plugin: str, version: str, accepted: Any) -> bool:
        """Keep a plugin's answer at this version, or later; ``None`` is a pass through. Returns whether it is kept."""

    async def made_elsewhere(self, plugin: str, version: str, seconds: float) -> FormerAnswer | None:
        """The answer to an equal request under way, if it comes within that time; ``None`` otherwise.

        Raises :exc:`~broker_core.plugins.failures.PluginFailed` if the plugin fails.
        """

    def make(self, plugin: str, version: str) -> AbstractContextManager[Making]:
        """A block in which the plugin is asked; equal requests wait for its end."""


class Making(Protocol):
    """A request in progress whose answer equal ones wait for."""

    def made(self, *, kept: bool) -> None:
        """Note that the answer is there."""
