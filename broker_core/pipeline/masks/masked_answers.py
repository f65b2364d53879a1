"""Masked listings, cached by the versions that the masks give (``broker_core_version``).

A masked answer is kept only if each plugin that masks the namespace gives a version before the work: under all that
these plugins depend on, with the names that they saw (by the identity of the listing, and its rows). If the names or a
version differ, the masks are asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from broker_core.listing import Listing, Selection, rows_key_of
from broker_core.names import NamespaceName
from broker_core.pipeline.change_notices import ChangeNotices, Mark
from broker_core.pipeline.listers.answer_store import AnswerStore
from broker_core.plugin_api import AnswerKey, ListingRequest, key_of

__all__ = ["MaskedAnswers", "MaskedAnswersToQuestion"]

_KIND: Final = "masked"


@dataclass(frozen=True, slots=True)
class _Masked:
    listing: Listing
    part: Any
    versions: tuple[str, ...]
    visible: Selection


class MaskedAnswers:
    """The masked listings; ``words`` says what the masks of a namespace depend on."""

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
        """The visible part of ``seen`` for a request, at these versions of the masks."""
        mark = self._notices.mark(request.namespace)
        return MaskedAnswersToQuestion(self._store, self._words, self._notices, mark, request, seen, versions)


@dataclass(frozen=True, slots=True)
class MaskedAnswersToQuestion:
    """The visible part of one selection for one request, as of the time of the question."""

    store: AnswerStore
    words: Callable[[NamespaceName], frozenset[str]]
    notices: ChangeNotices
    mark: Mark
    request: ListingRequest
    seen: Selection
    versions: tuple[str, ...]

    def find(self) -> Selection | None:
        """The visible topics, if they are cached."""
        kept: _Masked | None = self.store.get((_KIND, self._key()))
        if kept is None or kept.listing is not self.seen.listing or kept.versions != self.versions:
            return None
        return kept.visible if kept.part == rows_key_of(self.seen) else None

    def keep(self, visible: Selection) -> None:
        """Keep the visible topics, if that is possible."""
        if not self.notices.unchanged(self.request.namespace, self.mark):
            return
        key = self._key()
        value = _Masked(self.seen.listing, rows_key_of(self.seen), self.versions, visible)
        own = key.text + visible.remembered_bytes + 2 * sum(map(len, self.versions))
        self.store.put((_KIND, key), self.request.namespace, value, self.seen.listing, own)

    def _key(self) -> AnswerKey:
        # Listed topics mostly depend on pattern and properties: each has its own entry.
        return key_of(self.request, self.words(self.request.namespace) | {"pattern", "properties"})
