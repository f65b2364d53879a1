"""The shrink guard for answers of plugins, compared with the plugin's last listing for the same question and principal.

Deletions in a change log are intended: in the plugin's own log, or else in any, for a plugin that serves what another
store holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from broker_core.change_log import CatalogVersion, ChangeLog, Changes
from broker_core.errors import ListingFailed
from broker_core.guards import ShrinkGuard
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer
from broker_core.plugin_api import ListingRequest, question_text
from broker_core.plugins import Dispatcher

__all__ = ["GuardedAnswers"]

_log = structlog.get_logger(__name__)


class GuardedAnswers:
    """Checks the answers of plugins; one for a pipeline. ``logs`` gives all change logs, ``but`` is the plugin whose
    answers are checked elsewhere.
    """

    def __init__(
        self,
        guard: ShrinkGuard,
        dispatcher: Dispatcher,
        logs: Callable[[], Sequence[ChangeLog]],
        but: str | None = None,
    ) -> None:
        self._guard = guard
        self._but = but
        self._dispatcher = dispatcher
        self._logs = logs

    def versions(self, namespace: NamespaceName) -> tuple[CatalogVersion, ...]:
        """The states of the change logs, to be read before a question is asked: all later entries count."""
        if not self._guard.limits_of(namespace).enabled:
            return ()
        found: list[CatalogVersion] = []
        for log in self._logs():
            try:
                version = log.version_now(namespace)
            except ListingFailed:
                continue
            except Exception as error:  # noqa: BLE001  # a plugin's
                _log.warning("a change log failed", log=log.name, reason=str(error))
                continue
            if version is not None:
                found.append(version)
        return tuple(found)

    async def check(
        self, request: ListingRequest, accepted: AcceptedAnswer, versions: Sequence[CatalogVersion]
    ) -> None:
        """Raise :exc:`ListingFailed` if a whole answer of a plugin lost too many topics at once."""
        namespace, selection = request.namespace, accepted.selection
        if selection is None or not accepted.whole or accepted.lister == self._but:
            return
        if not self._guard.limits_of(namespace).enabled:
            return
        words = self._dispatcher.dependencies.of(accepted.lister)
        text = question_text(request, words | {"pattern"} if accepted.claimed else words)
        question, count = f"{text}, by {accepted.lister}", len(selection)
        deletions = 0
        for since in self._guard.versions_before(namespace, question, count):
            deletions = max(deletions, await self._deletions(accepted.lister, namespace, request.mode, since))
        self._guard.check(namespace, question, count, deletions=deletions, versions=versions)

    async def _deletions(
        self, plugin: str, namespace: NamespaceName, mode: Mode, since: CatalogVersion
    ) -> int:
        """The number of names that the change log of a version deleted after it; 0 if it does not know."""
        logs = self._logs()
        own = [log for log in logs if log.name == plugin]
        for log in own or logs:
            try:
                if await log.catalog_id() != since.catalog_id:
                    continue
                found = await log.changes(namespace, since)
            except ListingFailed:
                continue
            if isinstance(found, Changes):
                return sum(
                    len(change.listed_before.without(change.listed_after))
                    for change in found
                    if mode.lists(change.name.domain)
                )
        return 0
