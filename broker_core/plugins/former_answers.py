"""Former answers of plugins, as the chain asks for them: by a version, or for ``on_failure = "stale"``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from broker_core.plugins.load.registry import LoadedPlugin

__all__ = ["FormerAnswer", "LastAnswerKeeper", "Making", "VersionedAnswerKeeper"]


@dataclass(frozen=True, slots=True)
class FormerAnswer:
    """A former answer: its word, what ``accept`` had made of it, and its age in seconds."""

    word: str
    accepted: Any
    age: float


class LastAnswerKeeper(Protocol):
    """Keeps the last answers to one question, for plugins whose ``on_failure`` is ``stale``."""

    def answered(self, plugin: LoadedPlugin, accepted: Any, asked_at: float) -> None:
        """The plugin was asked at that time, and this is what came of it; ``None`` is a pass through."""

    def refused(self, plugin: LoadedPlugin) -> None:
        """The plugin refused the question: its former answers are no longer valid."""

    def recalled(self, plugin: LoadedPlugin, topics_hash: str | None, now: float) -> FormerAnswer | None:
        """The last answer, not older than the plugin's ``max_stale``; ``None`` where there is none."""


class VersionedAnswerKeeper(Protocol):
    """Keeps the answers to one question of plugins that tell their version before the work."""

    def find(self, plugin: str, version: str) -> FormerAnswer | None:
        """The answer at this version; its age says nothing."""

    def keep(self, plugin: str, version: str, accepted: Any) -> bool:
        """The plugin answered this at this version, or a later one; ``None`` is a pass through. Whether it is kept."""

    async def made_elsewhere(self, plugin: str, version: str, seconds: float) -> FormerAnswer | None:
        """The answer that an equal question, which is under way, gets within that time; ``None`` where none does.

        Raises :exc:`~broker_core.plugins.failures.PluginFailed` where the plugin fails it.
        """

    def make(self, plugin: str, version: str) -> AbstractContextManager[Making]:
        """The plugin is asked in this block; equal questions wait for its end."""


class Making(Protocol):
    """The answer to a question that equal ones wait for."""

    def made(self, *, kept: bool) -> None:
        """There is one."""
