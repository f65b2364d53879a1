"""What the audit log is told of requests that want to change something: a line for each of their rows.

It is read from the request and its answer, so that handlers need not know of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar

import structlog

from broker_core.access.audit_log import Action, Outcome, audit, audit_lines
from broker_core.catalog import CatalogError
from broker_core.errors import ListingFailed
from broker_core.kafka.acls.bindings import PatternType, ResourceType, binding_of, binding_text, known
from broker_core.names import PERSISTENT
from broker_core.names.topic_id import topic_id_text
from broker_core.servers.kafka.call import CloseClient, KafkaCall
from broker_core.servers.kafka.config_resources import ConfigResource
from broker_core.servers.kafka.row_error import RowError, error_of, error_row
from broker_core.wire.kafka import ErrorCode, Fields

__all__ = [
    "ChangedRow",
    "altered_configs",
    "audited",
    "created_acls",
    "created_partitions",
    "created_topics",
    "deleted_acls",
    "deleted_topics",
]

#: Lines of a request about rows of which nothing was made; one more tells how many others there are. A request may have
#: a quarter of a million of them.
_MOST_REFUSED: Final = 100
#: The codes that say that the server, or what it needs, could not.
_FAILED: Final = frozenset({ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT})


class ChangedRow(NamedTuple):
    """``code`` is what the client is told of ``target``; ``numbers`` are further fields of the line.

    ``is_unchanged``: nothing had to be done.
    """

    target: str
    code: int
    numbers: Mapping[str, int | str | None] = {}
    is_unchanged: bool = False


_Answer = TypeVar("_Answer")
_log = structlog.get_logger(__name__)


def audited(
    action: Action,
    later: Callable[[KafkaCall], Awaitable[_Answer]],
    rows_of: Callable[[KafkaCall, _Answer], Iterable[ChangedRow]],
    refused: Callable[[KafkaCall, RowError], _Answer],
) -> Callable[[KafkaCall], Awaitable[_Answer]]:
    """The same handler, whose changes are told; ``rows_of`` gives the rows of a request and its answer.

    What is only validated is not told. An exception that nobody foresaw is logged, and is the answer of each row, as
    Kafka has it: ``refused`` gives an answer of one error.
    """

    async def answer(call: KafkaCall) -> _Answer:
        is_change = not call.body.get("validate_only")
        try:
            told = await later(call)
        except (asyncio.CancelledError, CloseClient) as error:
            if is_change:
                outcome: Outcome = "failed" if isinstance(error, CloseClient) else "abandoned"
                audit(call.asker, action, outcome, namespace=str(call.namespace))
            raise
        except Exception as error:  # noqa: BLE001 - the client is told, and the log
            told = refused(call, _unforeseen(call, action, error))
        if is_change:
            count = sum(len(value) for value in call.body.values() if isinstance(value, list))
            await call.off_loop(count, _tell, call, action, rows_of(call, told))
        return told

    return answer


def _unforeseen(call: KafkaCall, action: Action, error: Exception) -> RowError:
    if isinstance(error, CatalogError | ListingFailed):
        return error_of(error)
    _log.error("Kafka change failed", action=action, peer=call.asker.remote_address, exc_info=error)
    return error_row(ErrorCode.UNKNOWN_SERVER_ERROR)


def _tell(call: KafkaCall, action: Action, rows: Iterable[ChangedRow]) -> None:
    refused = 0
    lines = audit_lines(call.asker, action, namespace=str(call.namespace))
    for (_named, code, numbers, is_unchanged), some in groupby(rows, _alike):
        targets = [row.target for row in some]
        if code:
            left = max(0, _MOST_REFUSED - refused)
            refused += len(targets)
            targets = targets[:left]
        if not targets:
            continue
        outcome: Outcome = "unchanged" if is_unchanged else "done"
        if code:
            outcome = "failed" if code in _FAILED else "refused"
        lines(outcome, targets, cause=ErrorCode(code).name if code else "", **numbers)
    if refused > _MOST_REFUSED:
        lines("refused", more=refused - _MOST_REFUSED)


def _alike(row: ChangedRow) -> tuple[bool, int, Mapping[str, int | str | None], bool]:
    """What rows have in common whose lines differ in the target alone."""
    return row.target != "", row.code, row.numbers, row.is_unchanged


def _topic(call: KafkaCall, name: str | None) -> str:
    return "" if name is None else f"{PERSISTENT}://{call.namespace}/{name}"


def created_topics(call: KafkaCall, rows: Sequence[bytes | Fields]) -> Iterator[ChangedRow]:
    """The topics of CreateTopics; ``rows`` that are not encoded yet have an error."""
    refused = {row["name"]: row["error_code"] for row in rows if not isinstance(row, bytes)}
    before = _topic(call, "")
    for name in dict.fromkeys(row["name"] for row in call.body["topics"]):
        yield ChangedRow(f"{before}{name}", refused.get(name, 0))


def deleted_topics(call: KafkaCall, fields: Fields) -> Iterator[ChangedRow]:
    """The rows of DeleteTopics; a topic that the client may only know by its id is told by that."""
    for row in fields["responses"]:
        topic_id = row["topic_id"]
        numbers = {"topic_id": topic_id_text(topic_id) if topic_id.int else None}
        yield ChangedRow(_topic(call, row["name"]), row.get("error_code", 0), numbers)


def created_partitions(call: KafkaCall, fields: Fields) -> Iterator[ChangedRow]:
    """The rows of CreatePartitions, with the number that was asked for."""
    counts = {row["name"]: row["count"] for row in call.body["topics"]}
    for row in fields["results"]:
        numbers = {"partitions": counts[row["name"]]}
        yield ChangedRow(_topic(call, row["name"]), row.get("error_code", 0), numbers)


def altered_configs(call: KafkaCall, fields: Fields) -> Iterator[ChangedRow]:
    """The rows of AlterConfigs and IncrementalAlterConfigs, with how many configs were given."""
    for asked, row in zip(call.body["resources"], fields["responses"], strict=True):
        kind, name = asked["resource_type"], asked["resource_name"]
        target = _topic(call, name) if kind == ConfigResource.TOPIC else f"{_kind(kind)}:{name}"
        numbers = {"configs": len(asked["configs"])}
        yield ChangedRow(target, row.get("error_code", 0), numbers, name in call.unchanged)


def _kind(number: int) -> str:
    return next((kind.name for kind in ConfigResource if kind == number), str(number))


def created_acls(call: KafkaCall, fields: Fields) -> Iterator[ChangedRow]:
    """The rows of CreateAcls."""
    for asked, row in zip(call.body["creations"], fields["results"], strict=True):
        yield _acl(call, asked, asked["resource_pattern_type"], row.get("error_code", 0))


def deleted_acls(call: KafkaCall, fields: Fields) -> Iterator[ChangedRow]:
    """A row for each ACL that DeleteAcls deleted, and for each filter that it refused, or that no ACL matched."""
    for row in fields["filter_results"]:
        code, found = row.get("error_code", 0), row.get("matching_acls", ())
        if code or not found:
            yield ChangedRow("", code, is_unchanged=not code)
        for each in found:
            yield _acl(call, each, each["pattern_type"], 0)


def _acl(call: KafkaCall, row: Mapping[str, Any], pattern: int, code: int) -> ChangedRow:
    kind, name = row["resource_type"], row["resource_name"]
    binding = binding_of(
        (kind, name, pattern, row["principal"], row["host"], row["operation"], row["permission_type"])
    )
    target = f"{known(ResourceType, kind).name}:{known(PatternType, pattern).name}:{name}"
    return ChangedRow(target, code, {"acl": binding_text(binding)}, binding in call.unchanged)
