"""Changes of topics for clients, whatever their protocol: their rights, and each request as one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from broker_core.access import Access, Asker
from broker_core.catalog import AsyncCatalog, CatalogError, Edit, ImportReport, TopicWrite
from broker_core.errors import Cause, ListingFailed
from broker_core.guards import Deletions
from broker_core.names import NamespaceName, TopicName
from broker_core.pipeline import Pipeline, one_line_of_denials
from broker_core.service.audit import ACTIONS, Action, Attempt
from broker_core.service.topic_imports import TopicImports

if TYPE_CHECKING:
    from broker_core.service.cluster_edits import ClusterEdits

__all__ = ["Changed", "TopicEditor", "right_to"]

#: The result of one edit.
Changed: TypeAlias = TopicWrite | CatalogError | ListingFailed

#: The right that each action needs, of :data:`~broker_core.access.asker.ACTIONS`.
_RIGHTS: Final[Mapping[Action, str]] = dict.fromkeys(ACTIONS, "admin")
#: Transports that ``[http] writes`` is about.
_HTTP: Final = frozenset({"http", "operator"})


def right_to(action: Action) -> str:
    """The right that an action needs from rules and gates."""
    return _RIGHTS[action]


class TopicEditor:
    """Changes topics of one catalogue for askers with the right; on one event loop.

    ``over_http`` is ``[http] writes``; ``elsewhere`` does edits of the namespace of a Kafka cluster, beside a catalogue
    or beside brokers that hold all other topics. An edit that raises, or returns an error, has changed nothing.
    """

    def __init__(
        self,
        catalog: AsyncCatalog | None,
        pipeline: Pipeline,
        *,
        over_http: bool = True,
        elsewhere: ClusterEdits | None = None,
    ) -> None:
        self.catalog = catalog
        self._elsewhere = elsewhere
        self._pipeline = pipeline
        self._over_http = over_http
        #: Bodies of imports that are received, or wait.
        self.imports = None if catalog is None else TopicImports(catalog)

    def are_of(self, namespace: NamespaceName) -> bool:
        """Whether topics of a namespace are changed here, and not by brokers."""
        return self.catalog is not None or self._is_elsewhere(namespace)

    def _is_elsewhere(self, namespace: NamespaceName) -> bool:
        return self._elsewhere is not None and namespace == self._elsewhere.namespace

    def check_transport(self, asker: Asker) -> None:
        """Raise :exc:`~broker_core.errors.ListingFailed` if nobody may change anything by this transport."""
        if asker.transport in _HTTP and not self._over_http:
            raise ListingFailed(
                "This server changes no topics over HTTP: writes = false in the table [http] of its settings",
                cause=Cause.NOT_ALLOWED,
            )

    async def allow(
        self, attempt: Attempt, what: TopicName | NamespaceName, deadline: float | None = None
    ) -> None:
        """Ask rules and gates, once in an attempt, whether it may change a topic, or some topics of a namespace.

        Raises :exc:`~broker_core.errors.ListingFailed` with the causes ``DENIED``, ``NOT_ALLOWED`` and those of gates.
        """
        if what not in attempt.verdicts:
            attempt.verdicts[what] = await self._verdict(attempt, what, deadline)
        refusal = attempt.verdicts[what]
        if refusal is not None:
            raise refusal

    async def _verdict(
        self, attempt: Attempt, what: TopicName | NamespaceName, deadline: float | None
    ) -> ListingFailed | None:
        assert attempt.action is not None
        assert attempt.asker is not None
        namespace, topic = (what.namespace, what) if isinstance(what, TopicName) else (what, None)
        try:
            self.check_transport(attempt.asker)
            access = Access(right_to(attempt.action), namespace, topic, attempt.asker)
            await self._pipeline.authorize(access, deadline, some=True)
        except ListingFailed as refusal:
            return refusal
        return None

    async def refusals(
        self, attempt: Attempt, topics: Iterable[TopicName], deadline: float | None = None
    ) -> dict[TopicName, ListingFailed]:
        """The topics that the attempt may not change, and why."""
        refused: dict[TopicName, ListingFailed] = {}
        if not self._pipeline.has_guards and self._over_http:
            return refused
        with one_line_of_denials():
            for topic in topics:
                try:
                    await self.allow(attempt, topic, deadline)
                except ListingFailed as refusal:
                    refused[topic] = refusal
        return refused

    async def change(
        self, attempt: Attempt, edits: Sequence[Edit], deadline: float | None = None
    ) -> list[Changed]:
        """Do edits of topics of one namespace, each by itself, in one transaction, as far as the attempt may.

        No change begins after ``deadline`` (loop time). Changes are on the disk when this returns, and one that has
        begun is completed though its caller is cancelled.
        """
        refused = await self.refusals(attempt, (edit.topic for edit in edits), deadline)
        left = [edit for edit in edits if edit.topic not in refused] if refused else edits
        if not left:
            return [refused[edit.topic] for edit in edits]
        done: list[Changed] = []
        try:
            namespace = left[0].topic.namespace
            if self._is_elsewhere(namespace):
                assert self._elsewhere is not None
                assert attempt.asker is not None
                done += await self._elsewhere.edit(attempt.asker, left, deadline)
            else:
                assert self.catalog is not None  # see are_of()
                done += await self.catalog.edit(namespace, left, deadline)
        except (CatalogError, ListingFailed) as failure:
            done += [failure] * len(left)
        for edit, each in zip(left, done, strict=True):
            if isinstance(each, CatalogError):
                assert attempt.asker is not None
                if not self._pipeline.authorization.may_list(attempt.asker, edit.topic):
                    each.unquote()
        made = [(edit, each) for edit, each in zip(left, done, strict=True) if isinstance(each, TopicWrite)]
        if made:
            attempt.made(made[0][1].version, [str(edit.topic) for edit, each in made if not each.changed])
        if not refused:
            return done
        rest = iter(done)
        return [refused.get(edit.topic) or next(rest) for edit in edits]

    async def import_topics(
        self,
        attempt: Attempt,
        namespace: NamespaceName,
        pieces: AsyncIterable[bytes],
        *,
        gzip: bool = False,
        exact: Deletions | None = None,
        deadline: float | None = None,
    ) -> ImportReport:
        """Import topics as :meth:`.TopicImports.import_body` does; the rights are asked before the body is read.

        If a gate decides about the namespace, or rules about its topics, rights to each topic are asked too.
        """
        await self.allow(attempt, namespace, deadline)
        assert attempt.asker is not None
        if self._is_elsewhere(namespace):
            raise ListingFailed(
                f"The topics of {namespace} are those of a Kafka cluster: nothing is imported there",
                cause=Cause.NOT_ALLOWED,
            )
        right = right_to("import_topics")
        asks = self._pipeline.dispatcher.gates(namespace) or self._pipeline.authorization.narrows(
            attempt.asker, right, str(namespace)
        )
        assert self.imports is not None  # see are_of()
        report = await self.imports.import_body(
            namespace, pieces, gzip=gzip, exact=exact, ask=partial(self.allow, attempt) if asks else None
        )
        counts = {name: getattr(report, name) for name in ("created", "updated", "deleted")}
        attempt.made(report.version, () if any(counts.values()) else [""], **counts)
        return report

    async def change_one(self, attempt: Attempt, edit: Edit, deadline: float | None = None) -> TopicWrite:
        """Do one edit; raises what :meth:`change` returns in its place."""
        (done,) = await self.change(attempt, [edit], deadline)
        if isinstance(done, TopicWrite):
            return done
        raise done
