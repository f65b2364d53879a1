"""Cached answers of plugins, before pattern and masks: valid at one version, or stale after a failure.

*While a version holds*: a plugin that gives a version before the work (``broker_core_version``) is not asked again at
that version. The version is read before the plugin is asked and again afterwards, and must be equal. An answer that was
made with the rest of the chain is not kept: the rest may change without this plugin's version. Nor is a page, or one
that came while the plugin said that its topics changed. While the plugin is asked, equal questions at the same version
wait for its answer: many clients come back at a time after a change, and one of them asks for all.

*A former one, up to max_stale*: the last good answer of a plugin whose ``on_failure`` is ``stale`` replaces a failure.
Its age counts from the moment when the plugin was asked: it was true at some time after that. An ``unchanged`` answer
confirms the remembered names if they have its hash; otherwise the hash alone is remembered, and is good for a client
that holds it.

"Pass through" is an answer too. The masks are applied again to a former answer, so that it never shows a topic that is
hidden now. Each is kept under all that the plugin depends on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from broker_core.listing import Selection, part_of
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.answer import has_hash
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.listers.answer_store import AnswerStore
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer
from broker_core.pipeline.runs.in_flight import VersionedRuns
from broker_core.plugin_api import AnswerKey, ListingRequest, TopicListingResult, key_of
from broker_core.plugins import LoadedPlugin, PluginFailed

__all__ = ["FormerAnswers", "FormerAnswersToQuestion", "PluginAnswer"]

_VERSIONED: Final = "version"
_LISTED: Final = "last"
_HASH: Final = "last hash"


class PluginAnswer(NamedTuple):
    """The answer of one plugin: its word, the checked topics (``None`` for a pass through), and how it came about.

    ``result`` is what the plugin returned, if it was asked now; ``kept``: it is a former answer at its ``version``.
    ``age`` is that of a former answer in place of a failure, in seconds.
    """

    word: str
    accepted: AcceptedAnswer | None
    result: TopicListingResult | None = None
    version: str | None = None
    kept: bool = False
    age: float = 0.0


@dataclass(slots=True)
class _Kept:
    """Kept answer of a plugin to one question.

    ``selection`` is ``None`` for a pass through, or if only a hash is known; ``pattern`` is as the client sent it.
    ``version`` and ``wants`` are of an answer at a version, ``true_at`` (loop time) of a last good one.
    """

    selection: Selection | None
    filtered: bool = False
    claimed: bool = False
    topics_hash: str | None = None
    pattern: str | None = None
    version: str | None = None
    wants: frozenset[str] = frozenset()
    true_at: float = 0.0

    @classmethod
    def of(cls, request: ListingRequest, accepted: AcceptedAnswer | None) -> _Kept:
        """Kept part of an answer to ``request``; ``None`` is a pass through."""
        if accepted is None:
            return cls(None, wants=request.wants)
        pattern = request.topics_pattern if accepted.claimed else None
        return cls(
            accepted.selection,
            accepted.filtered,
            accepted.claimed,
            accepted.topics_hash,
            pattern,
            wants=request.wants,
        )

    def answers(self, request: ListingRequest) -> bool:
        """Whether the answer is for a question that differs in the pattern alone.

        An answer that the plugin filtered is for its pattern alone, whatever the plugin says that its answers depend
        on.
        """
        return not self.claimed or self.pattern == request.topics_pattern

    @property
    def text(self) -> int:
        """Bytes of its texts."""
        return 2 * (len(self.pattern or "") + len(self.version or ""))


class FormerAnswers:
    """The former answers of all plugins; ``words`` says what the answers of a plugin depend on. For one event loop."""

    def __init__(
        self, store: AnswerStore, words: Callable[[str], frozenset[str]], notices: ChangeNotices
    ) -> None:
        self.store = store
        self.words = words
        self.notices = notices
        #: Plugins that are asked at a version, and those whose last answer could not be kept.
        self.runs = VersionedRuns()
        self.in_vain: set[str] = set()

    def to(self, request: ListingRequest, pattern: TopicsPattern | None) -> FormerAnswersToQuestion:
        """The former answers to one question, with the pattern that the core applies."""
        return FormerAnswersToQuestion(self, request, pattern)


class SharedRun:
    """A question in progress whose answer equal ones wait for."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        #: Whether the answer is kept, for all to find.
        self.kept = False


class FormerAnswersToQuestion:
    """The former answers to one question, as of the time when it was asked."""

    __slots__ = ("_all", "_mark", "_pattern", "_request")

    def __init__(self, former: FormerAnswers, request: ListingRequest, pattern: TopicsPattern | None) -> None:
        self._all = former
        self._request = request
        self._pattern = pattern
        self._mark = former.notices.mark(request.namespace)

    def _key(self, plugin: str) -> AnswerKey:
        return key_of(self._request, self._all.words(plugin), plugin)

    # -- while a version holds

    async def at_version(self, plugin: str, version: str, seconds: float) -> PluginAnswer | None:
        """The plugin's answer at this version: the kept one, or that of an equal question under way, if it comes within
        ``seconds``. Raises :exc:`~broker_core.plugins.failures.PluginFailed` if the plugin fails meanwhile.
        """
        found = self._find(plugin, version)
        if found is not None or not has_hash(self._request):  # a page, or more than topics, is not kept
            return found
        runs, key = self._all.runs, (version, self._key(plugin))
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while key in runs and (left := until - clock()) > 0:
            is_answered = await runs.wait(key, left)
            found = self._find(plugin, version)
            if found is not None or is_answered:
                break
        return found

    def _find(self, plugin: str, version: str) -> PluginAnswer | None:
        request = self._request
        kept: _Kept | None = self._all.store.get((_VERSIONED, self._key(plugin)))
        if kept is None or kept.version != version or not request.wants <= kept.wants:
            return None
        if not kept.answers(request):
            return None
        if kept.selection is None:
            return PluginAnswer("pass_through", None, None, version, kept=True)
        accepted = AcceptedAnswer(
            plugin, kept.selection, kept.filtered, kept.topics_hash, kept.claimed, version=version
        )
        return PluginAnswer("success", accepted, None, version, kept=True)

    @contextmanager
    def make(self, plugin: str, version: str) -> Iterator[SharedRun]:
        """A block in which the plugin is asked. Equal questions wait for its end, if its answer may be theirs."""
        request, runs, in_vain, run = self._request, self._all.runs, self._all.in_vain, SharedRun()
        key = (version, self._key(plugin))
        if (
            not has_hash(request)
            or request.topics_hash is not None  # "unchanged" is nothing to others
            or plugin in in_vain
            or key in runs
        ):
            yield run
            return
        runs.begin(key)
        try:
            yield run
        except BaseException as error:
            # Once the plugin has read a field that it does not declare, others may have another answer.
            if isinstance(error, PluginFailed) and (version, self._key(plugin)) == key:
                runs.fail(key, error)
            else:
                runs.end(key, answered=False)
            raise
        runs.end(key, answered=True)
        (in_vain.discard if run.kept else in_vain.add)(plugin)

    def keep(self, plugin: str, version: str, accepted: AcceptedAnswer | None) -> bool:
        """Keep the plugin's answer (``None`` is a pass through); returns whether it can be kept."""
        request = self._request
        if not self._all.notices.unchanged(request.namespace, self._mark):
            return False
        selection = None if accepted is None else accepted.selection
        if accepted is not None and (selection is None or not accepted.whole or accepted.details is not None):
            return False  # no topics were given, or a part of them, or more than topics
        new = _Kept.of(request, accepted)
        new.version = version
        kept = self._put(_VERSIONED, self._key(plugin), new)
        if kept and accepted is not None:
            accepted.owned = 0  # charged to its keeper
        return kept

    def _put(self, kind: str, key: AnswerKey, new: _Kept) -> bool:
        selection, text = new.selection, key.text + new.text
        listing = None if selection is None else selection.listing
        if selection is not None and kind is _VERSIONED:
            text += selection.remembered_bytes
        return self._all.store.put((kind, key), self._request.namespace, new, listing, text)

    # -- a former one, up to max_stale

    def answered(self, plugin: LoadedPlugin, accepted: AcceptedAnswer | None, requested_at: float) -> None:
        """Remember a plugin's answer; ``None`` is a pass through. A page is not remembered."""
        if accepted is not None and not accepted.whole:
            return
        key = self._key(plugin.name)
        new = _Kept.of(self._request, accepted)
        new.true_at = requested_at
        if accepted is not None and accepted.selection is None:
            self._unchanged(key, new)
            return
        last: _Kept | None = self._all.store.get((_LISTED, key))
        if last is not None:
            if last.true_at > requested_at:
                return  # a later question was answered sooner
            if _same(last.selection, new.selection):
                last.true_at, last.filtered = requested_at, new.filtered
                last.claimed, last.pattern = new.claimed, new.pattern
                return
        self._put(_LISTED, key, new)

    def refused(self, plugin: LoadedPlugin) -> None:
        """Forget a plugin's answers from before it refused."""
        key = self._key(plugin.name)
        self._all.store.drop((_LISTED, key))
        self._all.store.drop(self._hash_key(key))

    def recalled(self, plugin: LoadedPlugin, topics_hash: str | None, now: float) -> PluginAnswer | None:
        """The replacement of a failed answer: the newest former answer within the plugin's ``max_stale``.

        ``topics_hash`` is the client's hash, if the plugin may answer that it still holds.
        """
        store, key = self._all.store, self._key(plugin.name)
        oldest = now - plugin.options.max_stale
        last: _Kept | None = store.get((_LISTED, key))
        if last is not None and last.true_at < oldest:
            store.drop((_LISTED, key))
            last = None
        if last is not None and not last.answers(self._request):
            last = None
        known: _Kept | None = store.get(self._hash_key(key)) if topics_hash is not None else None
        if (
            known is not None
            and known.topics_hash == topics_hash
            and known.true_at >= oldest
            and (last is None or known.true_at >= last.true_at)
        ):
            word, last = "unchanged", known
        elif last is None:
            return None
        elif last.selection is None:
            return PluginAnswer("pass_through", None, age=now - last.true_at)
        else:
            word = "success"
        # The hash of names is computed anew, of those that are sent.
        known_hash = last.topics_hash if last.selection is None else None
        age = now - last.true_at
        accepted = AcceptedAnswer(
            plugin.name, last.selection, last.filtered, known_hash, last.claimed, stale=age
        )
        return PluginAnswer(word, accepted, age=age)

    def _unchanged(self, key: AnswerKey, new: _Kept) -> None:
        store = self._all.store
        last: _Kept | None = store.get((_LISTED, key))
        if last is not None and self._hash_of(last) == new.topics_hash:
            last.true_at = max(last.true_at, new.true_at)
            return
        place = self._hash_key(key)
        known: _Kept | None = store.get(place)
        if known is None or known.true_at <= new.true_at:
            text = key.text + 2 * len(self._request.topics_pattern or "")
            store.put(place, self._request.namespace, new, None, text)

    def _hash_of(self, last: _Kept) -> str | None:
        """The hash of the answer from remembered names, if it takes no work to know."""
        selection = last.selection
        if selection is None or not last.answers(self._request):
            return None
        if self._pattern is not None and not last.filtered:
            if not selection.matching_is_quick(self._pattern):
                return None
            selection = selection.matching(self._pattern)
        return selection.topics_hash if selection.hash_known else None

    def _hash_key(self, key: AnswerKey) -> tuple[str, AnswerKey, str | None]:
        # The hash is of the names that were sent, so it depends on the pattern whatever the names depend on.
        return (_HASH, key, self._request.topics_pattern)


def _same(one: Selection | None, other: Selection | None) -> bool:
    """Whether two selections are the same part of the same listing, or both none."""
    if one is None or other is None or one.listing is not other.listing:
        return one is other
    if one.is_slice and other.is_slice:
        return one.bounds == other.bounds
    return part_of(one) is part_of(other)
