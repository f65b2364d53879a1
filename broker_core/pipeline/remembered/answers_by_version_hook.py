"""Answers of plugins that give a version before the work (``broker_core_version``): taken again without asking.

The plugin's checked answer is kept from before the pattern and the masks, under all that the plugin depends on: "pass
through" is an answer too. The version is read before the plugin is asked and again afterwards, and must be equal. An
answer that was made with the rest of the chain is not kept: the rest may change without this plugin's version. Nor is a
page, or one that came while the plugin said that its topics changed.

While the plugin is asked, equal questions at the same version wait for its answer: many clients come back at a time
after a change, and one of them asks for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Self

from broker_core.listing import Selection
from broker_core.pipeline.change_notices import ChangeNotices, Mark
from broker_core.pipeline.remembered.answer_store import AnswerStore
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, is_of_pattern
from broker_core.pipeline.request.steps import has_hash
from broker_core.pipeline.runs.in_flight import RunEnd, VersionedRuns
from broker_core.plugin_api import AnswerKey, ListingRequest, key_of
from broker_core.plugins import FormerAnswer, PluginFailed

__all__ = ["AnswersByVersionHook", "VersionedAnswersToQuestion"]

_KIND: Final = "version"


@dataclass(frozen=True, slots=True)
class _Versioned:
    """``selection`` is ``None`` for a pass through; ``pattern`` (as the client sent it) matters if ``claimed``."""

    version: str
    selection: Selection | None
    filtered: bool
    claimed: bool
    topics_hash: str | None
    pattern: str | None
    wants: frozenset[str]


class AnswersByVersionHook:
    """The answers of all plugins; ``words`` says what the answers of a plugin depend on."""

    def __init__(
        self, store: AnswerStore, words: Callable[[str], frozenset[str]], notices: ChangeNotices
    ) -> None:
        self._store = store
        self._words = words
        self._notices = notices
        self._making = _AnswersInTheMaking()

    def to(self, request: ListingRequest) -> VersionedAnswersToQuestion:
        """The remembered answers to one question."""
        return VersionedAnswersToQuestion(
            self._store,
            self._words,
            request,
            self._notices,
            self._notices.mark(request.namespace),
            self._making,
        )


class _AnswersInTheMaking:
    """The answers under way, and the plugins whose last answer could not be kept."""

    __slots__ = ("in_vain", "runs")

    def __init__(self) -> None:
        self.runs = VersionedRuns()
        self.in_vain: set[str] = set()


class _MakingAnswer:
    """A block in which a plugin is asked; ``key`` is ``None`` if no request waits for its end. ``key_now`` differs from
    it once the plugin has read a field that it does not declare.

    It is a :class:`~broker_core.plugins.former_answers.Making`.
    """

    __slots__ = ("_all", "_end", "_key", "_key_now", "_plugin")

    def __init__(
        self,
        of_all: _AnswersInTheMaking,
        plugin: str,
        key: Hashable | None,
        key_now: Callable[[], Hashable],
    ) -> None:
        self._all = of_all
        self._plugin = plugin
        self._key = key
        self._key_now = key_now
        self._end = RunEnd.GAVE_UP

    def __enter__(self) -> Self:
        if self._key is not None:
            self._all.runs.begin(self._key)
        return self

    def made(self, *, kept: bool) -> None:
        """Note that there is an answer."""
        self._end = RunEnd.KEPT if kept else RunEnd.NOT_KEPT

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self._key is None:
            return
        if isinstance(error, PluginFailed) and self._key_now() == self._key:
            self._all.runs.fail(self._key, error)
            return
        self._all.runs.end(self._key, self._end)
        if self._end is RunEnd.KEPT:
            self._all.in_vain.discard(self._plugin)
        elif self._end is RunEnd.NOT_KEPT:
            self._all.in_vain.add(self._plugin)


class VersionedAnswersToQuestion:
    """The answers to one question, as of the time when it was asked.

    It is a :class:`~broker_core.plugins.former_answers.VersionedAnswerKeeper`.
    """

    __slots__ = ("_making", "_mark", "_notices", "_request", "_store", "_words")

    def __init__(
        self,
        store: AnswerStore,
        words: Callable[[str], frozenset[str]],
        request: ListingRequest,
        notices: ChangeNotices,
        mark: Mark,
        making: _AnswersInTheMaking,
    ) -> None:
        self._store = store
        self._words = words
        self._request = request
        self._notices = notices
        self._mark = mark
        self._making = making

    def find(self, plugin: str, version: str) -> FormerAnswer | None:
        """The plugin's answer at this version."""
        kept: _Versioned | None = self._store.get((_KIND, self._key(plugin)))
        if kept is None or kept.version != version or not self._request.wants <= kept.wants:
            return None
        if not is_of_pattern(self._request, kept.claimed, kept.pattern):
            return None
        if kept.selection is None:
            return FormerAnswer("pass_through", None, 0.0)
        accepted = AcceptedAnswer(
            plugin, kept.selection, kept.filtered, kept.topics_hash, kept.claimed, version=version
        )
        return FormerAnswer("success", accepted, 0.0)

    async def made_elsewhere(self, plugin: str, version: str, seconds: float) -> FormerAnswer | None:
        """The result of an equal question under way, if it comes within ``seconds``."""
        request, runs = self._request, self._making.runs
        if not has_hash(request):
            return None  # a page, or more than topics, is not kept
        key = (version, self._key(plugin))
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while key in runs and (left := until - clock()) > 0:
            end = await runs.wait(key, left)
            found = self.find(plugin, version)
            if found is not None or end is not RunEnd.GAVE_UP:
                return found
        return None

    def make(self, plugin: str, version: str) -> _MakingAnswer:
        """A block in which the plugin is asked. Other requests wait for it if its answer is likely to be theirs."""
        request = self._request
        key: Hashable | None = (version, self._key(plugin))
        if (
            not has_hash(request)
            or request.topics_hash is not None  # "unchanged" is nothing to others
            or plugin in self._making.in_vain
            or key in self._making.runs
        ):
            key = None
        return _MakingAnswer(self._making, plugin, key, lambda: (version, self._key(plugin)))

    def keep(self, plugin: str, version: str, accepted: AcceptedAnswer | None) -> bool:
        """Keep the plugin's answer (``None`` is a pass through); returns whether it can be kept."""
        if not self._notices.unchanged(self._request.namespace, self._mark):
            return False
        selection = None if accepted is None else accepted.selection
        if accepted is not None and (selection is None or not accepted.whole or accepted.details is not None):
            return False  # no topics were given, or a part of them, or more than topics
        raw = self._request.topics_pattern
        key = self._key(plugin)
        text = key.text + 2 * len(version)
        if accepted is None:
            new = _Versioned(version, None, False, False, None, None, self._request.wants)
        else:
            assert selection is not None
            new = _Versioned(
                version,
                selection,
                accepted.filtered,
                accepted.claimed,
                accepted.topics_hash,
                raw if accepted.claimed else None,
                self._request.wants,
            )
            text += (2 * len(raw or "") if accepted.claimed else 0) + selection.remembered_bytes
        listing = None if selection is None else selection.listing
        kept = self._store.put((_KIND, key), self._request.namespace, new, listing, text)
        if kept and accepted is not None:
            accepted.owned = 0  # charged to its keeper
        return kept

    def _key(self, plugin: str) -> AnswerKey:
        return key_of(self._request, self._words(plugin), plugin)
