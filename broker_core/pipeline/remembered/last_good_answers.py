"""The last good answer of each plugin to each question, for plugins whose ``on_failure`` is ``stale``.

The plugin's checked answer is remembered from before the masks. The masks are applied again to a former answer, so that
it never shows a topic that is hidden now; its hash is computed from the remaining names. "Pass through" is an answer
too: the question goes on to the next lister as it did the last time.

The age of an answer counts from the moment when the plugin was asked: it was true at some time after that. An
``unchanged`` answer confirms the remembered names if they have its hash; otherwise the hash alone is remembered, and is
good for a client that holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker_core.listing import Selection, part_of
from broker_core.names import NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.remembered.answer_store import AnswerStore
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, is_of_pattern
from broker_core.plugin_api import AnswerKey, ListingRequest, key_of
from broker_core.plugins import FormerAnswer, LoadedPlugin

__all__ = ["LastGoodAnswers", "LastGoodAnswersToQuestion"]

_LISTED: Final = "last"
_HASH: Final = "last hash"


@dataclass(slots=True)
class _Last:
    """``selection`` is ``None`` for a pass through; ``pattern`` (as the client sent it) matters if ``claimed``."""

    selection: Selection | None
    filtered: bool
    claimed: bool
    pattern: str | None
    true_at: float


@dataclass(slots=True)
class _LastHash:
    topics_hash: str
    filtered: bool
    true_at: float


class LastGoodAnswers:
    """The last answers of plugins. Times are seconds of the event loop's clock."""

    def __init__(self, store: AnswerStore, words: Callable[[str], frozenset[str]]) -> None:
        self._store = store
        self._words = words  # that the answers of a plugin depend on

    def to(self, request: ListingRequest, pattern: TopicsPattern | None) -> LastGoodAnswersToQuestion:
        """The last good answers to one question, with the pattern that the core applies."""
        return LastGoodAnswersToQuestion(self._store, self._words, request, pattern)


class LastGoodAnswersToQuestion:
    """The last answers to one question (:class:`~broker_core.plugins.former_answers.LastAnswerKeeper`)."""

    __slots__ = ("_pattern", "_request", "_store", "_words")

    def __init__(
        self,
        store: AnswerStore,
        words: Callable[[str], frozenset[str]],
        request: ListingRequest,
        pattern: TopicsPattern | None,
    ) -> None:
        self._store = store
        self._words = words
        self._request = request
        self._pattern = pattern

    def answered(self, plugin: LoadedPlugin, accepted: AcceptedAnswer | None, requested_at: float) -> None:
        """Remember a plugin's answer; ``None`` is a pass through. A page is not remembered."""
        if accepted is not None and not accepted.whole:
            return
        key = self._key(plugin)
        if accepted is not None and accepted.selection is None:
            assert accepted.topics_hash is not None
            self._unchanged(key, accepted.topics_hash, filtered=accepted.filtered, requested_at=requested_at)
            return
        last: _Last | None = self._store.get((_LISTED, key))
        selection = None if accepted is None else accepted.selection
        if last is not None:
            if last.true_at > requested_at:
                return  # a later question was answered sooner
            if last.selection is selection or _same(last.selection, selection):
                last.true_at = requested_at
                if accepted is not None:
                    last.filtered, last.claimed = accepted.filtered, accepted.claimed
                    last.pattern = self._request.topics_pattern
                return
        raw = self._request.topics_pattern
        new = (
            _Last(None, False, False, None, requested_at)
            if accepted is None
            else _Last(selection, accepted.filtered, accepted.claimed, raw, requested_at)
        )
        text = key.text + (2 * len(raw) if new.claimed and raw is not None else 0)
        listing = None if selection is None else selection.listing
        self._store.put((_LISTED, key), self._namespace, new, listing, text)

    def refused(self, plugin: LoadedPlugin) -> None:
        """Forget a plugin's answers from before it refused."""
        key = self._key(plugin)
        self._store.drop((_LISTED, key))
        self._store.drop(self._hash_key(key))

    def recalled(self, plugin: LoadedPlugin, topics_hash: str | None, now: float) -> FormerAnswer | None:
        """The replacement of a failed answer: the newest former answer within the plugin's ``max_stale``.

        ``topics_hash`` is the client's hash, if the plugin may answer that it still holds.
        """
        key = self._key(plugin)
        oldest = now - plugin.options.max_stale
        last: _Last | None = self._store.get((_LISTED, key))
        if last is not None and last.true_at < oldest:
            self._store.drop((_LISTED, key))
            last = None
        if last is not None and not is_of_pattern(self._request, last.claimed, last.pattern):
            last = None
        known: _LastHash | None = self._store.get(self._hash_key(key)) if topics_hash is not None else None
        if (
            known is not None
            and known.topics_hash == topics_hash
            and known.true_at >= oldest
            and (last is None or known.true_at >= last.true_at)
        ):
            age = now - known.true_at
            accepted = AcceptedAnswer(plugin.name, None, known.filtered, known.topics_hash, stale=age)
            return FormerAnswer("unchanged", accepted, age)
        if last is None:
            return None
        age = now - last.true_at
        if last.selection is None:
            return FormerAnswer("pass_through", None, age)
        # Its hash is computed anew, of the names that are sent.
        accepted = AcceptedAnswer(plugin.name, last.selection, last.filtered, None, last.claimed, stale=age)
        return FormerAnswer("success", accepted, age)

    def _unchanged(self, key: AnswerKey, topics_hash: str, *, filtered: bool, requested_at: float) -> None:
        last: _Last | None = self._store.get((_LISTED, key))
        if last is not None and self._hash_of(last) == topics_hash:
            last.true_at = max(last.true_at, requested_at)
            return
        place = self._hash_key(key)
        known: _LastHash | None = self._store.get(place)
        if known is not None and known.true_at > requested_at:
            return
        text = key.text + 2 * len(self._request.topics_pattern or "")
        self._store.put(place, self._namespace, _LastHash(topics_hash, filtered, requested_at), None, text)

    def _hash_of(self, last: _Last) -> str | None:
        """The hash of the answer from remembered names, if it takes no work to know."""
        selection = last.selection
        if selection is None or not is_of_pattern(self._request, last.claimed, last.pattern):
            return None
        if self._pattern is not None and not last.filtered:
            if not selection.matching_is_quick(self._pattern):
                return None
            selection = selection.matching(self._pattern)
        return selection.topics_hash if selection.hash_known else None

    def _key(self, plugin: LoadedPlugin) -> AnswerKey:
        return key_of(self._request, self._words(plugin.name), plugin.name)

    def _hash_key(self, key: AnswerKey) -> tuple[str, AnswerKey, str | None]:
        # The hash is of the names that were sent, so it depends on the pattern whatever the names depend on.
        return (_HASH, key, self._request.topics_pattern)

    @property
    def _namespace(self) -> NamespaceName:
        return self._request.namespace


def _same(one: Selection | None, other: Selection | None) -> bool:
    """Whether two selections are the same part of the same listing."""
    if one is None or other is None or one.listing is not other.listing:
        return False
    if one.is_slice and other.is_slice:
        return one.bounds == other.bounds
    return part_of(one) is part_of(other)
