"""The operation ``POST /v1/namespaces/{tenant}/{namespace}/topics:import``."""

from __future__ import annotations

from typing import Final

from aiohttp import hdrs, web
from pydantic import ConfigDict, Field

from broker_core.change_log import version_text
from broker_core.guards import Deletions
from broker_core.names import MAX_PARTITIONS
from broker_core.pattern_and_replica_bounds import MAX_REPLICATION
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject, schema_of
from broker_core.servers.http.api.operation import (
    CHANGE_PROBLEMS,
    Body,
    HttpOperation,
    Reply,
    Right,
    Schema,
)
from broker_core.servers.http.api.parameters import flag_parameter, number_parameter
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices, needs_changes
from broker_core.servers.http.api.topic_object import TOPIC_ID_PATTERN
from broker_core.servers.http.api.writes.change_topic import NAMESPACE_VERSION
from broker_core.service import MOST_AUTHORIZED, MOST_BYTES, BodyTooLarge

__all__ = ["operations"]

_NDJSON: Final = "application/x-ndjson"
_MOST_DELETIONS: Final = 2**53 - 1


class _Line(JsonObject):
    # The catalogue reads lines, a million in a second, from files too.
    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="A local name or a full one.", min_length=1)
    partitions: int | None = Field(
        None, ge=0, le=MAX_PARTITIONS, description="0, or left out: a topic without any."
    )
    properties: dict[str, str] | None = Field(None, description="Left out: those that the topic has stay.")
    topic_id: str | None = Field(
        None,
        pattern=TOPIC_ID_PATTERN,
        description="Of a new topic, in base64 or hexadecimal. Left out: a new id.",
    )
    configs: dict[str, str] | None = Field(
        None, description="Of Kafka. Left out: those that the topic has stay."
    )
    replication: int | None = Field(
        None,
        ge=1,
        le=MAX_REPLICATION,
        description="Replicas, as of Kafka. Left out: the number that the topic has stays.",
    )


_LINES: Final[Schema] = {
    "type": "array",
    "description": "Objects, one a line.",
    "items": schema_of(_Line),
}
_EXAMPLE: Final = [
    {"name": "orders", "partitions": 3, "properties": {"region": "eu"}},
    {"name": "bills"},
]


class _Report(JsonObject):
    lines: int = Field(description="Lines of the body.")
    topics: int = Field(description="Topics in them.")
    created: int = Field(description="Topics that were not there.")
    updated: int = Field(description="Topics whose content was changed.")
    unchanged: int = Field(description="Topics that were there with this content already.")
    deleted: int = Field(description="Topics that were not in the body, with exact.")
    names_lost: int = Field(description="Listed names that are gone, with exact: each partition is one.")
    renewed_ids: int = Field(
        description="New topics that got a new id: another topic has that of the line, or had it a while ago."
    )
    repeats: int = Field(description="Names that came more than once: each time but the first.")
    version: str = Field(description="Of the namespace, for `since=` of its changes.")


_COUNTS: Final = [name for name in _Report.model_fields if name != "version"]
_EXACT: Final = flag_parameter(
    "exact",
    "Whether topics that are not in the body are deleted. More than a tenth of the names (and more than 100), or all, "
    "are only deleted with max_deletions.",
)
_MOST: Final = number_parameter(
    "max_deletions",
    "With exact: the most listed names that may be deleted; each partition is one.",
    0,
    _MOST_DELETIONS,
)


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operations of this module."""
    return [
        HttpOperation(
            "POST",
            "/v1/namespaces/{tenant}/{namespace}/topics:import",
            "importTopics",
            "Import many topics into a namespace: all of the body, or nothing.",
            Right.CREDENTIALS,
            _import,
            {
                200: Reply(
                    "What became of the topics.",
                    {"application/json": _Report},
                    {NAMESPACE_VERSION: "The version of the namespace."},
                    {
                        "application/json": dict.fromkeys(_COUNTS, 0)
                        | {"lines": 2, "topics": 2, "created": 2}
                        | {"version": "A1sqh0DGTTO5k7Gf3O4HIA:4.b5bc23107921e4c98e49386e"}
                    },
                ),
                409: Reply(
                    "Nothing was changed: `deletions` of `there` listed names would be deleted, or a topic would be "
                    "beside a partition of its name with other properties (CONFLICT)."
                ),
                **CHANGE_PROBLEMS,
            },
            description="A topic that is there keeps its id, gets further partitions, and its properties are replaced "
            "by those of the line, if it has some. The last line of a topic counts. A wrong line is a 400 with its "
            "number in `line`. The body may be compressed with gzip. With exact and max_deletions, an empty "
            "one empties the namespace. If plugins authorize, they are asked about the namespace and about each "
            f"topic that is imported or deleted, of which there may be {MOST_AUTHORIZED} each.",
            parameters=(_EXACT, _MOST),
            body=Body(
                {_NDJSON: _LINES},
                MOST_BYTES,
                "Topics, one a line; none is a body too.",
                may_be_empty=True,
                encodings=("gzip",),
                examples={_NDJSON: _EXAMPLE},
            ),
            tag="writes",
            changes="import_topics",
        )
    ]


async def _import(request: ApiRequest) -> web.StreamResponse:
    namespace = request.namespace()
    changes = needs_changes(request.services, namespace)
    exact, most = request.values[_EXACT.name], request.values[_MOST.name]
    if most is not None and not exact:
        raise refused(400, "max_deletions is for exact=true: nothing is deleted without")
    try:
        report = await changes.import_topics(
            request.attempt,
            namespace,
            request.pieces(),
            gzip=request.http.headers.get(hdrs.CONTENT_ENCODING, "").lower() == "gzip",
            exact=Deletions(most) if exact else None,
            deadline=request.deadline,
        )
    except BodyTooLarge as error:
        raise refused(413, str(error)) from None
    version = version_text(report.version)
    counts = {name: getattr(report, name) for name in _COUNTS}
    return _Report(**counts, version=version).response(headers={NAMESPACE_VERSION: version})
