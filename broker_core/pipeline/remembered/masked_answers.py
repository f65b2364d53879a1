"""Masked listings, cached by the versions that the masks tell (``broker_core_version``).

A masked answer is kept only where each plugin that masks the namespace tells a version before the work: under all that
these plugins depend on, with the names that they saw (by the identity of the listing, and the rows of it). Where the
names, or a version, are others, the masks are asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from broker_core.listing.listing import Listing, Selection, rows_key_of
from broker_core.names import NamespaceName
from broker_core.pipeline.change_notices import ChangeNotices, Mark
from broker_core.pipeline.remembered.answer_store import AnswerStore
from broker_core.plugin_api.depends_on import AnswerKey, key_of
from broker_core.plugin_api.listing_request import ListingRequest

__all__ = ["MaskedAnswers", "MaskedAnswersToQuestion"]

_KIND: Final = "masked"


@dataclass(frozen=True, slots=True)
class _Masked:
    listing: Listing
    part: Any
    versions: tuple[str, ...]
    visible: Selection


class MaskedAnswers:
    """What was left of all listings; ``words`` says what the masks of a namespace depend on."""

    def __init__(
        self,
        store: AnswerStore,
        words: Callable[[NamespaceName], frozenset[str]],
        notices: ChangeNotices,
    ) -> None:
        self._store = store
        self._words = words
        self._notices = notices

    def to(
        self, request: ListingRequest, seen: Selection, versions: tuple[str, ...]
    ) -> MaskedAnswersToQuestion:
        """What was left of ``seen`` for a request, at these versions of the masks."""
        mark = self._notices.mark(request.namespace)
        return MaskedAnswersToQuestion(self._store, self._words, self._notices, mark, request, seen, versions)


@dataclass(frozen=True, slots=True)
class MaskedAnswersToQuestion:
    """What was left of one selection for one request, as of the time when it was asked."""

    store: AnswerStore
    words: Callable[[NamespaceName], frozenset[str]]
    notices: ChangeNotices
    mark: Mark
    request: ListingRequest
    seen: Selection
    versions: tuple[str, ...]

    def find(self) -> Selection | None:
        """The visible topics, where they are cached."""
        kept: _Masked | None = self.store.get((_KIND, self._key()))
        if kept is None or kept.listing is not self.seen.listing or kept.versions != self.versions:
            return None
        return kept.visible if kept.part == rows_key_of(self.seen) else None

    def keep(self, visible: Selection) -> None:
        """This is visible; nothing, where it cannot be kept."""
        if not self.notices.unchanged(self.request.namespace, self.mark):
            return
        key = self._key()
        value = _Masked(self.seen.listing, rows_key_of(self.seen), self.versions, visible)
        own = key.text + visible.remembered_bytes + 2 * sum(map(len, self.versions))
        self.store.put((_KIND, key), self.request.namespace, value, self.seen.listing, own)

    def _key(self) -> AnswerKey:
        # What was listed depends on these two as a rule: each of them has its place.
        return key_of(self.request, self.words(self.request.namespace) | {"pattern", "properties"})
