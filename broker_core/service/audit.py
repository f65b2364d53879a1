"""The audit log: a line for each attempt of a client to change something, whatever its protocol.

The lines are part of the server's log, by a logger of their own, and are never folded into a count.
docs/how-to/monitor.md#changes-in-the-log
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import structlog
from structlog.typing import FilteringBoundLogger

from broker_core.access import Asker
from broker_core.change_log import CatalogVersion, version_text
from broker_core.compact_json import ascii_text
from broker_core.errors import ListingFailed
from broker_core.logs import EachLine, info_each
from broker_core.names import TopicName
from broker_core.redaction import shown, shown_each

__all__ = ["ACTIONS", "AUDIT_LOGGER", "OUTCOMES", "Action", "Attempt", "AuditRow", "Outcome", "fields_text"]

#: The field ``logger`` of the lines.
AUDIT_LOGGER: Final = "broker_core.audit"
#: The most lines of an attempt about refused targets; one more has the number of the others. A request of Kafka may
#: have a quarter of a million of them.
_MOST_REFUSED: Final = 100

#: The kinds of changes that a client may want.
Action: TypeAlias = Literal[
    "create_topic",
    "put_topic",
    "change_topic",
    "delete_topic",
    "add_partitions",
    "import_topics",
    "create_namespace",
    "delete_namespace",
    "alter_configs",
    "create_acl",
    "delete_acl",
    "delete_group",
    "alter_offsets",
    "reassign_partitions",
    "put_kafka_user",
    "delete_kafka_user",
    "accept_shrink",
    "disconnect_clients",
    "ask_plugin",
    "explain_as",
]
#: ``abandoned``: the client left before anything was changed.
Outcome: TypeAlias = Literal["done", "unchanged", "refused", "failed", "abandoned"]
Value: TypeAlias = int | str | None

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)

_log = structlog.get_logger(AUDIT_LOGGER)

#: A value that cannot be taken for the next field, or for two.
_PLAIN: Final = re.compile(r'[^\s"=\\]+')


def fields_text(fields: Mapping[str, str]) -> str:
    """A ``target`` of several fields: ``role=team-a topic="a b"``. What is not plain is written as in JSON."""
    return " ".join(
        f"{name}={value if _PLAIN.fullmatch(value) else ascii_text(value)}" for name, value in fields.items()
    )


class AuditRow(NamedTuple):
    """One target of an attempt, and what became of it.

    ``target`` is its name, such as a topic's. A target that the attempt knows to be ``unchanged`` may be given as
    ``done``. ``cause`` says why it was not changed, ``fields`` are further fields: counts, codes and versions.
    """

    target: str = ""
    outcome: Outcome = "done"
    cause: str = ""
    fields: Mapping[str, Value] = {}


class Attempt:
    """One request of a client that wants to change something: the decisions about it, and its lines.

    ``action`` is ``None`` for a request that only reads, which has no line, and neither has one whose ``asker`` is not
    known: failed authentications have log lines of their own. ``namespace`` and ``target`` are set at first as far as
    the request could be read.

    No field may have a value that a client has set, such as a property's, a config's or a password.
    """

    __slots__ = ("action", "asker", "fields", "namespace", "rows", "target", "unchanged", "verdicts")

    def __init__(
        self, action: Action | None, asker: Asker | None = None, *, namespace: str = "", target: str = ""
    ) -> None:
        self.action = action
        self.asker = asker
        self.namespace = namespace
        self.target = target
        #: Why each topic, or namespace as a whole, of which rights were asked may not be changed.
        self.verdicts: dict[Hashable, ListingFailed | None] = {}
        #: The targets, and the bindings of ACLs, that are already as the request wants them.
        self.unchanged: set[Hashable] = set()
        #: Fields of the change that was made: counts, and the version. Rows have these fields if they are given.
        self.fields: dict[str, Value] = {}
        #: The targets, if there are several.
        self.rows: list[AuditRow] = []

    def allowed(self, topics: Iterable[TopicName]) -> None:
        """Note that rules and gates allow these topics to be changed: the finder has asked."""
        self.verdicts.update(dict.fromkeys(topics))

    def made(self, version: CatalogVersion, unchanged: Iterable[str] = (), **counts: int) -> None:
        """Note a change, the version of the namespace after it, and the targets that needed no change."""
        self.fields = {**counts, "version": version_text(version)}
        self.unchanged.update(unchanged)

    def ended(self, rows: Iterable[AuditRow]) -> None:
        """Write the lines, once the client's answer is known; from any thread. It waits for nothing."""
        if self.action is None or self.asker is None:
            return
        log, asker, refused = _log.bind(), self.asker, 0
        client = {
            "role": asker.role,
            "principal": asker.original_principal,
            "address": asker.remote_address,
            "client_version": shown(asker.client_version),
            "transport": asker.transport,
            "namespace": shown(self.namespace),
        }
        for (_, outcome, cause, fields), alike in groupby(map(self._finished, rows), _but_target):
            targets = [row.target for row in alike]
            if outcome in ("refused", "failed"):
                left = max(0, _MOST_REFUSED - refused)
                refused += len(targets)
                targets = targets[:left]
            head = {"action": self.action, "outcome": outcome, "cause": cause, **client}
            _write(log, {**head, "target": shown(targets[0]) if targets else "", **fields}, targets)
        if refused > _MOST_REFUSED:
            more = {"more": refused - _MOST_REFUSED}
            _write(log, {"action": self.action, "outcome": "refused", **client, **more}, [""])

    def _finished(self, row: AuditRow) -> AuditRow:
        is_unchanged = row.outcome == "done" and row.target in self.unchanged
        return row._replace(outcome="unchanged") if is_unchanged else row


def _but_target(row: AuditRow) -> tuple[bool, Outcome, str, Mapping[str, Value]]:
    """The common part of rows whose lines differ in the target alone."""
    return row.target != "", row.outcome, row.cause, row.fields


def _write(log: FilteringBoundLogger, line: Mapping[str, object], targets: Sequence[str]) -> None:
    """Write a line for each target; all have a name, or none has. Fields without a value are left out."""
    given = {name: value for name, value in line.items() if value is not None and value != ""}
    if len(targets) > 1 and "target" in given:
        info_each(log, "audit", EachLine("target", shown_each(targets)), logger=AUDIT_LOGGER, **given)
        return
    for _ in targets:
        log.info("audit", logger=AUDIT_LOGGER, **given)
