"""Writes `broker_core/wire/kafka/api_tables.py`, Kafka's messages as tables, from Kafka's own definitions of them.

`make kafka-tables` runs it. The definitions are those of all requests and responses of Apache Kafka 4.3.1, unchanged,
with its LICENSE and NOTICE, from `kafka-clients-4.3.1.jar` of Maven Central:

    unzip -o -j kafka-clients-4.3.1.jar LICENSE NOTICE 'common/message/*Request.json' 'common/message/*Response.json' \\
        -d broker_core/wire/kafka/definitions

It imports nothing of the package that it writes a module of, so that it works whatever is in that module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

__all__ = ["APIS", "DEFINITIONS", "OWN", "TABLES", "Definition", "api_table", "definition", "tables"]

#: The APIs that are understood, by Kafka's names: a line more and `make kafka-tables` give the tables of one more.
APIS: Final = (
    "AlterConfigs",
    "AlterPartitionReassignments",
    "ApiVersions",
    "ConsumerGroupDescribe",
    "ConsumerGroupHeartbeat",
    "CreateAcls",
    "CreatePartitions",
    "CreateTopics",
    "DeleteAcls",
    "DeleteGroups",
    "DeleteTopics",
    "DescribeAcls",
    "DescribeClientQuotas",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeGroups",
    "DescribeLogDirs",
    "DescribeProducers",
    "DescribeTopicPartitions",
    "DescribeTransactions",
    "DescribeUserScramCredentials",
    "Fetch",
    "FindCoordinator",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "JoinGroup",
    "LeaveGroup",
    "ListConfigResources",
    "ListGroups",
    "ListOffsets",
    "ListPartitionReassignments",
    "ListTransactions",
    "Metadata",
    "OffsetCommit",
    "OffsetDelete",
    "OffsetFetch",
    "Produce",
    "SaslAuthenticate",
    "SaslHandshake",
)

#: What a file of Kafka's, or an object in it, says.
Definition: TypeAlias = "dict[str, Any]"
#: The fields of structs that several fields of one message have, by the names of the structs.
_Structs: TypeAlias = "Mapping[str, list[Definition]]"

#: The requests with pages (KIP-1062): the first version that has them, and the fields of a cursor.
_PAGED: Final[Mapping[str, tuple[int, Sequence[str]]]] = {
    "ConsumerGroupDescribe": (0, ("GroupId", "MemberId")),
    "DescribeAcls": (2, ("ResourceName", "ResourceType")),
    "DescribeConfigs": (4, ("ResourceName", "ResourceType")),
    "DescribeGroups": (5, ("GroupId", "MemberId")),
    "DescribeLogDirs": (2, ("TopicName", "PartitionIndex", "LogDir")),
    "DescribeProducers": (0, ("TopicName", "PartitionIndex", "ProducerId")),
    "DescribeTransactions": (0, ("TransactionalId", "ProducerId")),
    "ListGroups": (3, ("GroupId",)),
    "ListOffsets": (6, ("TopicName", "PartitionIndex")),
    "ListPartitionReassignments": (0, ("TopicName", "PartitionIndex")),
    "ListTransactions": (0, ("TransactionalId", "ProducerId")),
    "Metadata": (9, ("TopicName", "PartitionIndex")),
    "OffsetFetch": (6, ("GroupId", "TopicName", "PartitionIndex")),
}
#: The types of fields of cursors that are no text.
_IN_CURSORS: Final[Mapping[str, str]] = {
    "PartitionIndex": "int32",
    "ProducerId": "int64",
    "ResourceType": "int8",
}


def _tagged(name: str, kind: str, tag: int, first: int, **more: Any) -> Definition:
    return {
        "name": name,
        "type": kind,
        "tag": tag,
        "versions": f"{first}+",
        "taggedVersions": f"{first}+",
    } | more


def _cursor(name: str, tag: int, first: int, fields: Sequence[str]) -> Definition:
    inside = [{"name": each, "type": _IN_CURSORS.get(each, "string"), "versions": "0+"} for each in fields]
    if "TopicName" in fields:
        inside.append(_tagged("TopicId", "uuid", 10003, 0))
    return _tagged(name, "Cursor", tag, first, default="null", fields=inside)


#: What is otherwise than in Kafka's definition of a message, or beside it, such as a tag of our own: fields as Kafka
#: writes them; of a field that Kafka has, only what is otherwise.
OWN: Final[dict[str, list[Definition]]] = {}
for _api, (_first, _names) in _PAGED.items():
    OWN[f"{_api}Request"] = [
        _tagged("ResponsePaginationLimit", "limit", 10000, _first, default="null"),
        _cursor("Cursor", 10001, _first, _names),
    ]
    OWN[f"{_api}Response"] = [_cursor("NextCursor", 10002, _first, _names)]
# Kafka's default, 0, is a broker that copies the partitions; -1 is a client, which our requests are of.
OWN["ListOffsetsRequest"].append({"name": "ReplicaId", "default": "-1"})

_KAFKA: Final = Path(__file__).resolve().parent.parent / "broker_core" / "wire" / "kafka"
DEFINITIONS: Final = _KAFKA / "definitions"
TABLES: Final = _KAFKA / "api_tables.py"

#: The kinds of values by Kafka's names of them, in the order of imports. Records of messages are bytes here.
_KINDS: Final[Mapping[str, str]] = {
    "bool": "BOOLEAN",
    "bytes": "BYTES",
    "records": "BYTES",
    "float64": "FLOAT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "limit": "LIMIT",
    "string": "STRING",
    "uint16": "UINT16",
    "uuid": "UUID",
}
#: What a field may say: of what is on the wire, and of other things.
_ATTRIBUTES: Final = frozenset(
    {"name", "type", "versions", "nullableVersions", "default", "fields", "tag", "taggedVersions"}
    | {"about", "entityType", "ignorable", "mapKey", "zeroCopy"}
)
_WIDTH: Final = 110
_HEAD: Final = '''"""Kafka's messages: the requests and responses of each API, declared field by field.

Generated by `make kafka-tables` from the definitions of Apache Kafka 4.3.1 in `definitions`: not to be edited.
"""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import NEVER, Api
'''


@dataclass(frozen=True, slots=True)
class _Call:
    """A call in the source of the tables."""

    function: str
    arguments: Sequence[str | _Call]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


def _lines(node: str | _Call, depth: int = 0) -> str:
    """The source as ruff formats it: in one line if it fits, otherwise a line for each argument."""
    indent = 4 * depth
    if isinstance(node, str) or indent + len(f"{node},") <= _WIDTH:
        return str(node)
    lines = [f"{' ' * (indent + 4)}{_lines(each, depth + 1)},\n" for each in node.arguments]
    return f"{node.function}(\n{''.join(lines)}{' ' * indent})"


def definition(message: str) -> Definition:
    """The definition of a message, such as ``"MetadataRequest"``. Kafka's files are JSON with lines of comment."""
    text = (DEFINITIONS / f"{message}.json").read_text(encoding="utf-8")
    found: Definition = json.loads(re.sub(r"(?m)^\s*//.*", "", text))
    fields = {each["name"]: each for each in found.get("fields", ())}
    for own in OWN.get(message, ()):
        fields[own["name"]] = fields.get(own["name"], {}) | own
    return found | {"fields": list(fields.values())}


def tables(apis: Iterable[str]) -> str:
    """The source of the module."""
    rows = {
        _snake_case(api).upper(): api_table(definition(f"{api}Request"), definition(f"{api}Response"))
        for api in apis
    }
    body = "".join(f"\n{name}: Final = {table}\n" for name, table in rows.items())
    used = [kind for kind in dict.fromkeys(_KINDS.values()) if re.search(rf"\b{kind}\b", body)]
    used += ["Array", *(["Cursor"] if "Cursor(" in body else []), "Field", "Struct", "Versions"]
    imported = "".join(f"    {name},\n" for name in used)
    exported = "".join(f'    "{name}",\n' for name in sorted([*rows, "KAFKA_APIS"]))
    listed = "".join(f"    {name},\n" for name in rows)
    return (
        f"{_HEAD}from broker_core.wire.kafka.fields import (\n{imported})\n\n__all__ = [\n{exported}]\n"
        f"{body}\n#: All of them.\nKAFKA_APIS: Final = (\n{listed})\n"
    )


def api_table(request: Definition, response: Definition) -> str:
    """The source of the table of one API, by the definitions of its two messages.

    Raises :exc:`ValueError` for what no table can say.
    """
    name = request["name"].removesuffix("Request")
    versions = _versions(request["validVersions"])
    if not versions:
        raise ValueError(f"{name} has no versions: Kafka had it once")
    for each in ("apiKey", "validVersions", "flexibleVersions"):
        if request[each] != response[each]:
            raise ValueError(f"{name}: {each} of the request and of the response are not the same")
    if request.get("latestVersionUnstable"):
        versions = versions[:-1]  # brokers do not have it unless they are configured to
    flexible = _versions(request["flexibleVersions"])
    arguments: list[str | _Call] = [
        str(request["apiKey"]),
        f'"{name}"',
        f"Versions({versions[0]}, {versions[-1]})",
        f"flexible={flexible[0] if flexible else 'NEVER'}",
        _message("request", request, versions),
        _message("response", response, versions),
    ]
    if name == "ApiVersions":  # its client does not know yet what the server can read (KIP-511)
        arguments.append("plain_response_header=True")
    return _lines(_Call("Api", arguments))


def _message(direction: str, message: Definition, versions: range) -> _Call:
    common = {each["name"]: each["fields"] for each in message.get("commonStructs", ())}
    return _Call(f"{direction}=Struct", list(_fields(message["fields"], versions, common)))


def _fields(fields: Iterable[Definition], versions: range, common: _Structs) -> Iterator[_Call]:
    """The fields of a struct that is there in these ``versions``."""
    for each in fields:
        there = _both(versions, _versions(each["versions"]))
        if there:
            yield _field(each, there, common, always=there == versions)


def _field(each: Definition, there: range, common: _Structs, *, always: bool) -> _Call:
    """A field of the versions ``there``, which may be all of those of its struct (``always``)."""
    if not each.keys() <= _ATTRIBUTES:
        raise ValueError(f"{each['name']}: {sorted(each.keys() - _ATTRIBUTES)} mean nothing here")
    if "tag" in each and each["taggedVersions"] != each["versions"]:
        raise ValueError(f"{each['name']} has its tag in some of its versions alone")
    nullable = _both(there, _versions(each.get("nullableVersions", "none")))
    arguments: list[str | _Call | None] = [
        f'"{_snake_case(each["name"])}"',
        _kind(each, there, common),
        None if always else f'"{each["versions"]}"',
        f'nullable="{"0+" if nullable == there else each["nullableVersions"]}"' if nullable else None,
        _default(each, always_nullable=nullable == there),
        f"tag={each['tag']}" if "tag" in each else None,
    ]
    return _Call("Field", [argument for argument in arguments if argument is not None])


def _kind(each: Definition, there: range, common: _Structs) -> str | _Call:
    name = each["type"].removeprefix("[]")
    one: str | _Call
    if name in _KINDS:
        one = _KINDS[name]
    else:
        fields = each["fields"] if "fields" in each else common[name]
        kind = "Cursor" if "tag" in each and name == "Cursor" else "Struct"
        one = _Call(kind, list(_fields(fields, there, common)))
    return one if name == each["type"] else _Call("Array", [one])


def _default(each: Definition, *, always_nullable: bool) -> str | None:
    """The default, unless it is that of the kind.

    Kafka's of a text is the empty one, and its brokers set null if they have none to say: here a text that may
    always be null is null by default.
    """
    given = str(each.get("default", "null" if each["type"] == "string" and always_nullable else ""))
    if given in ("", "false", "False"):
        return None
    if given == "null":
        return "default=None"
    if each["type"] == "bool":
        return "default=True"
    number = int(given, 0)
    return f"default={number}" if number else None


def _versions(text: str) -> range:
    """``"0+"``, ``"4-8"``, ``"3"`` or ``"none"``."""
    if text == "none":
        return range(0)
    first, _, last = text.removesuffix("+").partition("-")
    return range(int(first), 2**15 if text.endswith("+") else int(last or first) + 1)


def _both(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


if __name__ == "__main__":
    TABLES.write_text(tables(APIS), encoding="utf-8")
