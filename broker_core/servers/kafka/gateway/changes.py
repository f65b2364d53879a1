"""Changes of a cluster: rules, gates and masks come first, then the deciding node; the audit has a line of each."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from broker_core.kafka import is_legal
from broker_core.redaction import shown
from broker_core.servers.kafka.apis.acls import created_results, deleted_results, none_created, none_deleted
from broker_core.servers.kafka.apis.create_topics import collision
from broker_core.servers.kafka.apis.delete_topics import (
    deleted_topics,
    no_topics_deleted,
    refused_topic,
    topics_to_delete,
)
from broker_core.servers.kafka.gateway.acls import create_shown, delete_shown
from broker_core.servers.kafka.gateway.hidden_topics import Undecided, denied, guarded, hidden, hidden_ids
from broker_core.servers.kafka.gateway.reads import Kept, by_coordinator, key_of_resource, of_one_group
from broker_core.servers.kafka.gateway.relay import Refused, beside, by_controller, by_their_nodes
from broker_core.servers.kafka.requests.call import AnswerLater, HandlerRow, KafkaCall, audited, row_of
from broker_core.servers.kafka.requests.config_resource_types import ConfigResourceType
from broker_core.servers.kafka.row_error import FAILURES, RowError, error_row
from broker_core.servers.kafka.topics.new_topic import new_name
from broker_core.service import Action, AuditRow, right_to
from broker_core.wire.kafka import (
    ALTER_CONFIGS,
    ALTER_PARTITION_REASSIGNMENTS,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_GROUPS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
    LEAVE_GROUP,
    MESSAGES,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    ZERO_ID,
    Api,
    ErrorCode,
    Fields,
)

__all__ = ["CHANGE_ROWS"]

_BY_ID: Final = 6
_OF_CLUSTER: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_OF_GROUPS: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED


def _without_text(row: Fields) -> Fields:
    """A row of an existing topic without the node's texts, which may quote its configs and partitions."""
    return {**row, "error_message": MESSAGES.get(row["error_code"])} if row.get("error_message") else row


def _without_configs(row: Fields) -> Fields:
    """A row of a new topic without its details, as a node answers clients that may not describe its configs."""
    if row["error_code"] or "configs" not in row:
        return row
    unknown = {"num_partitions": -1, "replication_factor": -1, "configs": []}
    return {**row, **unknown, "topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def _without_other(row: Fields) -> Fields:
    """A row of a new topic without the name of the topic that it collides with, which may be hidden."""
    name = row["name"]
    if row["error_code"] != ErrorCode.INVALID_TOPIC_EXCEPTION or not is_legal(name):
        return row
    return {**row, "error_message": collision(name, None).message}


@dataclass(frozen=True, slots=True, kw_only=True)
class _RelayedChange:
    """A request that changes the things of its array ``requested``, with a row of each in the array ``answered``.

    ``topic`` gives the name of a thing's topic, ``None`` for a thing of no topic; ``row`` the row of a refused thing,
    with the fields of its error, and ``result`` the audit's data of a row: its target, and its code. ``code`` is for a
    thing of no topic that may not be changed.
    """

    api: Api
    action: Action
    requested: str
    answered: str
    topic: Callable[[Any], str | None]
    row: Callable[[Any, Fields], Fields]
    result: Callable[[Fields], tuple[str, int]]
    code: ErrorCode = _OF_CLUSTER
    #: Asks the deciding node, with the things that are not refused; by default the controller.
    relay: AnswerLater | None = None
    #: Makes the answer if the deciding node cannot be asked; by default a row for each thing.
    refused: Refused | None = None
    #: The error code of that answer, at which clients try again.
    again: ErrorCode = ErrorCode.NOT_CONTROLLER
    #: Whether the things exist already, so that a hidden one counts as missing.
    are_there: bool = True
    #: The error of an impossible thing, whatever the cluster says.
    wrong: Callable[[KafkaCall, Any], RowError | None] = lambda _call, _thing: None
    #: Makes the row for a client that rules do not let list its topic.
    unlisted: Callable[[Fields], Fields] = _without_text
    #: Makes the row if anything may be hidden from clients.
    guarded: Callable[[Fields], Fields] = lambda row: row
    #: The path of the array whose elements have errors; empty: ``answered``.
    errors: str = ""

    def error(self, error: RowError) -> Fields:
        """The fields of an error."""
        return error.fields_of(self.api.response.struct_at(self.errors or self.answered))

    def each_refused(self, call: KafkaCall, error: RowError) -> Fields:
        """The answer with one error in a row for each thing: the audit log has a line of each row."""
        return {self.answered: [self.row(thing, self.error(error)) for thing in call.body[self.requested]]}

    def all_refused(self, call: KafkaCall, error: RowError) -> Fields:
        """The answer if the deciding node cannot be asked."""
        return (self.refused or self.each_refused)(call, error)

    def client_row(self, call: KafkaCall, row: Fields) -> Fields:
        """A row of a node's answer, as the client may have it."""
        if call.may_hide_topics:
            row = self.guarded(row)
        name = self.topic(row)
        return row if name is None or call.may_list(name) else self.unlisted(row)

    def audit_rows(self, call: KafkaCall, fields: Fields) -> Iterator[AuditRow]:
        """The results of the things, for the audit log."""
        whole: int = fields.get("error_code", 0)
        group = call.body.get("group_id")
        about = {} if group is None else {"group": shown(group)}
        for row in fields.get(self.answered) or ():
            target, code = self.result(row)
            is_topic = row.get("resource_type", ConfigResourceType.TOPIC) == ConfigResourceType.TOPIC
            yield row_of(call.full_name(target) if is_topic and target else target, code or whole, about)
        if whole and not fields.get(self.answered):
            yield row_of("", whole, about)


async def _changed(change: _RelayedChange, call: KafkaCall) -> Fields:
    """The answer to a request, of which the deciding node gets the things that are not refused."""
    things: Sequence[Any] = call.body[change.requested]
    wrong = {place: change.wrong(call, thing) for place, thing in enumerate(things)}
    refused = {place: error for place, error in wrong.items() if error is not None}
    try:
        refused |= await _refusals(call, change, things)
    except Undecided:
        return change.all_refused(call, error_row(change.again))
    left = [thing for place, thing in enumerate(things) if place not in refused]
    rows = [change.row(things[place], change.error(error)) for place, error in refused.items()]
    if refused and not left:
        return {change.answered: rows}
    relay = change.relay or partial(by_controller, api=change.api, refused=change.all_refused)
    answer = await relay(replace(call, body={**call.body, change.requested: left}))
    of_node = (change.client_row(call, row) for row in answer[change.answered] or ())
    return answer | {change.answered: [*of_node, *rows]}


async def _refusals(call: KafkaCall, change: _RelayedChange, things: Sequence[Any]) -> dict[int, RowError]:
    """The things, by their places, that the client may not change."""
    if not call.may_hide_topics:
        return {}
    topics = {place: change.topic(thing) for place, thing in enumerate(things)}
    names = [name for name in topics.values() if name is not None]
    not_allowed = await denied(call, change.action, names)
    left = [name for name in names if name not in not_allowed] if change.are_there else []
    gone = await hidden(call, left, rules=right_to(change.action))
    ids: dict[int, uuid.UUID] = {
        place: things[place]["topic_id"]
        for place, name in topics.items()
        if name is None
        and isinstance(things[place], dict)
        and things[place].get("topic_id", ZERO_ID) != ZERO_ID
    }
    unknown = await hidden_ids(call, ids.values(), rules=right_to(change.action))
    other = None
    if len(names) < len(things):
        other = await call.refusal(change.code, change.action)
    refused: dict[int, RowError] = {}
    for place, name in topics.items():
        if name is None:
            error = error_row(ErrorCode.UNKNOWN_TOPIC_ID) if ids.get(place) in unknown else other
        elif name in gone:
            error = RowError(gone[name].error, gone[name].message or MESSAGES.get(gone[name].error))
        else:
            error = not_allowed.get(name)
        if error is not None:
            refused[place] = error
    return refused


def _row(change: _RelayedChange) -> HandlerRow:
    later = partial(_changed, change)
    return HandlerRow(
        change.api, partial(audited, change.action, later, change.audit_rows, change.each_refused)
    )


def _name(thing: Fields) -> str:
    name: str = thing["name"]
    return name


def _wrong_name(call: KafkaCall, thing: Fields) -> RowError | None:
    """The error of a name that listings could not have; for names that Kafka cannot have, the node gives the error."""
    name = new_name(_name(thing), call.namespace)
    return name if isinstance(name, RowError) and is_legal(_name(thing)) else None


def _named(thing: Fields, error: Fields) -> Fields:
    return {"name": thing["name"], **error}


def _name_and_code(row: Fields) -> tuple[str, int]:
    return row["name"] or "", row["error_code"]


def _in_partitions(thing: Fields, error: Fields) -> Fields:
    """The row of a topic with the error in each of its partitions."""
    partitions = [{"partition_index": each["partition_index"], **error} for each in thing["partitions"]]
    return {name: thing[name] for name in ("name", "topic_id") if name in thing} | {"partitions": partitions}


def _of_partitions(row: Fields) -> tuple[str, int]:
    codes = [each["error_code"] for each in row["partitions"]]
    return row.get("name") or "", next(filter(None, codes), 0)


def _resource(thing: Fields, error: Fields) -> Fields:
    return {"resource_type": thing["resource_type"], "resource_name": thing["resource_name"], **error}


def _topic_of_resource(thing: Fields) -> str | None:
    return thing["resource_name"] if thing["resource_type"] == ConfigResourceType.TOPIC else None


def _not_committed(call: KafkaCall, error: RowError) -> Fields:
    return {"topics": [_in_partitions(row, {"error_code": error.code}) for row in call.body["topics"]]}


def _not_deleted(_call: KafkaCall, error: RowError) -> Fields:
    return {"error_code": error.code, "topics": []}


_CREATE: Final = _RelayedChange(
    api=CREATE_TOPICS,
    action="create_topic",
    requested="topics",
    answered="topics",
    topic=_name,
    row=_named,
    result=_name_and_code,
    are_there=False,
    wrong=_wrong_name,
    unlisted=_without_configs,
    guarded=_without_other,
)
_PARTITIONS: Final = _RelayedChange(
    api=CREATE_PARTITIONS,
    action="add_partitions",
    requested="topics",
    answered="results",
    topic=_name,
    row=_named,
    result=_name_and_code,
)
_REASSIGN: Final = _RelayedChange(
    api=ALTER_PARTITION_REASSIGNMENTS,
    action="reassign_partitions",
    requested="topics",
    answered="responses",
    topic=_name,
    row=_in_partitions,
    result=_of_partitions,
    errors="responses.partitions",
)


def _configs_of(api: Api) -> _RelayedChange:
    return _RelayedChange(
        api=api,
        action="alter_configs",
        requested="resources",
        answered="responses",
        topic=_topic_of_resource,
        row=_resource,
        result=lambda row: (row["resource_name"], row["error_code"]),
        relay=partial(_configs_by_node, api),
    )


async def _configs_by_node(api: Api, call: KafkaCall) -> Fields:
    """Configs of a node are changed at it, and all others by the controller."""

    def refused(call: KafkaCall, error: RowError) -> Fields:
        fields = error.fields_of(api.response.struct_at("responses"))
        return {"responses": [_resource(row, fields) for row in call.body["resources"]]}

    resources = call.body["resources"]
    nodes = await by_their_nodes(call, resources)
    if nodes.keys() <= {None}:
        return await by_controller(call, api, refused)

    def part(node: int | None, some: list[Fields]) -> Coroutine[Any, Any, Fields]:
        requested = replace(call, body={**call.body, "resources": some})
        if node is None:
            return by_controller(requested, api, refused)
        return by_controller(requested, api, refused, target=node, gone=ErrorCode.BROKER_NOT_AVAILABLE)

    parts = await beside(part(node, some) for node, some in nodes.items())
    places = {key_of_resource(row): place for place, row in enumerate(resources)}
    rows = [row for each in parts for row in each["responses"]]
    rows.sort(key=lambda row: places.get(key_of_resource(row), 0))
    return parts[0] | {"responses": rows}


_CONFIGS: Final = [_configs_of(api) for api in (ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS)]
_OFFSETS: Final = [
    _RelayedChange(
        api=api,
        action="alter_offsets",
        requested="topics",
        answered="topics",
        topic=lambda thing: thing.get("name") or None,
        row=_in_partitions,
        result=_of_partitions,
        errors="topics.partitions",
        code=_OF_GROUPS,
        refused=refused,
        again=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        relay=partial(of_one_group, api, refused, again=False),
    )
    for api, refused in ((OFFSET_COMMIT, _not_committed), (OFFSET_DELETE, _not_deleted))
]


async def _delete_topics(call: KafkaCall) -> Fields:
    """Delete topics by name and by id."""
    try:
        return await _delete_shown(call)
    except Undecided:
        return no_topics_deleted(call, error_row(ErrorCode.NOT_CONTROLLER))


async def _delete_shown(call: KafkaCall) -> Fields:
    """Delete the topics that are not hidden; one given by its id alone is looked up if it may be."""
    requested = topics_to_delete(call)
    refused: list[Fields] = []
    left = requested
    if call.may_hide_topics:
        ids = [row["topic_id"] for row in requested if row["name"] is None]
        right = right_to("delete_topic")
        found = await call.services.named.by_id(call, ids, operation=None, rules=right)
        known_ids = dict(zip(ids, found, strict=True))
        names = {topic_id: row.name for topic_id, row in known_ids.items() if not row.error}
        name_of = [names.get(row["topic_id"]) if row["name"] is None else row["name"] for row in requested]
        known = [name for name in name_of if name is not None]
        not_allowed = await denied(call, "delete_topic", known)
        gone = await hidden(call, [name for name in known if name not in not_allowed], rules=right)
        left = []
        for row, name in zip(requested, name_of, strict=True):
            error: RowError | None = None
            if name is None:
                why = known_ids[row["topic_id"]].error
                code = why if why in FAILURES else ErrorCode.UNKNOWN_TOPIC_ID
                error = error_row(code) if row["topic_id"] != ZERO_ID else None
            elif name in gone:
                code = gone[name].error
                if row["name"] is None and code not in FAILURES:
                    code = ErrorCode.UNKNOWN_TOPIC_ID
                error = error_row(code)
            else:
                error = not_allowed.get(name)
            if error is None:
                left.append(row)
            else:
                refused.append(refused_topic(row["name"], row["topic_id"], error))
    if refused and not left:
        return {"responses": refused}
    body = {**call.body, "topics": left}
    if call.version < _BY_ID:
        body["topic_names"] = [row["name"] for row in left]
    answer = await by_controller(replace(call, body=body), DELETE_TOPICS, no_topics_deleted)
    return answer | {"responses": [*answer["responses"], *refused]}


def _no_groups(call: KafkaCall, error: RowError) -> Fields:
    return {"results": [{"group_id": name, "error_code": error.code} for name in call.body["groups_names"]]}


def _group_results(_call: KafkaCall, fields: Fields) -> Iterator[AuditRow]:
    for row in fields["results"]:
        yield row_of(shown(row["group_id"]), row["error_code"])


def _nobody_leaves(_call: KafkaCall, error: RowError) -> Fields:
    return {"error_code": error.code, "members": []}


def _leaving_results(call: KafkaCall, fields: Fields) -> Iterator[AuditRow]:
    codes = [row["error_code"] for row in fields["members"]]
    count = {"members": len(call.body["members"])}
    yield row_of(shown(call.body["group_id"]), fields["error_code"] or next(filter(None, codes), 0), count)


def _guarded(
    api: Api,
    action: Action,
    relay: AnswerLater,
    results: Callable[[KafkaCall, Fields], Iterator[AuditRow]],
    none: Refused,
    code: ErrorCode = _OF_CLUSTER,
) -> HandlerRow:
    """The row of an API whose requests concern no topics."""
    later = partial(guarded, relay, code, none, action)
    return HandlerRow(api, partial(audited, action, later, results, none))


_delete_groups: Final = partial(
    by_coordinator,
    DELETE_GROUPS,
    Kept("groups_names", "", "results", "group_id"),
    refused=_no_groups,
    again=False,
)
_leave: Final = partial(of_one_group, LEAVE_GROUP, _nobody_leaves, again=False)
_create_acls: Final = partial(create_shown, partial(by_controller, api=CREATE_ACLS, refused=none_created))
_delete_acls: Final = partial(delete_shown, partial(by_controller, api=DELETE_ACLS, refused=none_deleted))

CHANGE_ROWS: Final = (
    *(_row(change) for change in (_CREATE, _PARTITIONS, _REASSIGN, *_CONFIGS, *_OFFSETS)),
    HandlerRow(
        DELETE_TOPICS, partial(audited, "delete_topic", _delete_topics, deleted_topics, no_topics_deleted)
    ),
    _guarded(CREATE_ACLS, "create_acl", _create_acls, created_results, none_created),
    _guarded(DELETE_ACLS, "delete_acl", _delete_acls, deleted_results, none_deleted),
    _guarded(DELETE_GROUPS, "delete_group", _delete_groups, _group_results, _no_groups, _OF_GROUPS),
    _guarded(LEAVE_GROUP, "delete_group", _leave, _leaving_results, _nobody_leaves, _OF_GROUPS),
)
