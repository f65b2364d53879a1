"""What the audit log is told of one request that wants to change something."""

from __future__ import annotations

from aiohttp import web

from broker_core.access.asker import Asker
from broker_core.access.audit_log import Action, Outcome, audit
from broker_core.catalog import CatalogVersion
from broker_core.names import TopicName
from broker_core.servers.http.api.problem_details import Problem
from broker_core.servers.http.api.version_text import version_text

__all__ = ["AuditedChange"]


class AuditedChange:
    """The one line of a request; ``action`` is ``None`` for a request that only reads, which has no line.

    ``target`` begins as it is written in the path. A request whose client is not authenticated has no line: the log
    tells of it otherwise.
    """

    __slots__ = ("_action", "_asker", "_changed", "_namespace", "_numbers", "target")

    def __init__(self, action: Action | None, request: web.Request) -> None:
        self._action = action
        self._asker: Asker | None = None
        parts = request.match_info
        self._namespace = f"{parts['tenant']}/{parts['namespace']}" if "namespace" in parts else ""
        self.target = parts.get("topic") or parts.get("topic_id") or ""
        self._changed = True
        self._numbers: dict[str, int | str] = {}

    def by(self, asker: Asker) -> None:
        """Who asks is known."""
        self._asker = asker

    def about(self, topic: TopicName) -> None:
        """Which topic it is about, where the path has its id alone."""
        self._namespace, self.target = str(topic.namespace), str(topic)

    def made(self, version: CatalogVersion, *, changed: bool, **counts: int) -> None:
        """It was made, and this is the version of the namespace then; not ``changed``: nothing had to be."""
        self._changed = changed
        self._numbers = counts | {"version": version_text(version)}

    def ended(self, status: int | None, problem: Problem | None) -> None:
        """Write the line. ``status`` is that of the response; ``None``: the client left before there was one."""
        if self._action is None or self._asker is None:
            return
        cause = "" if problem is None else problem.cause.name
        outcome: Outcome
        if status is None:
            outcome = "abandoned"
        elif status < 400:
            outcome = "done" if self._changed else "unchanged"
        else:
            outcome = "refused" if status < 500 or status == 501 else "failed"
        audit(
            self._asker,
            self._action,
            outcome,
            namespace=self._namespace,
            target=self.target,
            cause=cause,
            status=status,
            **self._numbers,
        )
