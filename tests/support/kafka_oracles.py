"""Kafka's messages written and read by two other codecs: that of kafka-python, and kio.

kio is generated from Kafka's own definitions. Neither may read bytes of strangers: kio ends the process on some.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, Literal, TypeAlias

import kio.index
import kio.schema.errors
import kio.serial
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer
from kafka.protocol.schemas.fields import codecs
from kafka.protocol.schemas.fields.base import BaseField

from broker_core.wire.kafka import NOT_REQUESTED, ZERO_ID, Api, Fields
from broker_core.wire.kafka.fields import Array, Field, Struct, Versions

__all__ = [
    "DIRECTIONS",
    "OWN_TAGS",
    "Direction",
    "libraries_of",
    "read_by",
    "schema_differences",
    "written_by",
]

Direction: TypeAlias = Literal["request", "response"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("request", "response")
Library: TypeAlias = Literal["kafka-python", "kio"]

#: The first of our own tags (KIP-1062).
OWN_TAGS: Final = 10_000
_BitField: Final[Any] = codecs.BitField
#: kafka-python's names for fields that it reads as sets of bits.
_BITS: Final = {"topic_authorized_operations", "cluster_authorized_operations"}


def libraries_of(api: Api) -> tuple[Library, ...]:
    """The codecs that know an API: kafka-python lacks ConsumerGroupDescribe."""
    return ("kafka-python", "kio") if (api.key, "request") in _all_of_kafka_python() else ("kio",)


def written_by(library: Library, api: Api, direction: Direction, version: int, value: Fields) -> bytes:
    """The bytes of a message without a header."""
    message = getattr(api, direction)
    if library == "kafka-python":
        found = _to_kafka_python(_kafka_python(api.key, direction), message, version, value)
        return bytes(found.encode(version=version))
    entity = _kio(api.key, direction, version)
    buffer = io.BytesIO()
    kio.serial.entity_writer(entity)(buffer, _to_kio(entity, message, version, value))
    return buffer.getvalue()


def read_by(library: Library, api: Api, direction: Direction, version: int, data: bytes) -> Fields:
    """The value of a message that our own codec has written."""
    message = getattr(api, direction)
    if library == "kafka-python":
        # Not that of the class: kafka-python takes an answer to ApiVersions with an error for one of version 0.
        found = ApiMessage.decode.__func__(_kafka_python(api.key, direction), data, version=version)
        return _from_kafka_python(found, message, version)
    value, size = kio.serial.entity_reader(_kio(api.key, direction, version))(data, 0)
    assert size == len(data)
    return _from_kio(value, message, version)


def _there(message: Struct, version: int) -> Iterator[Field]:
    """The fields of a version, but our own tags: nobody else has them."""
    return (
        each
        for each in message.fields
        if version in Versions.parse(each.versions) and (each.tag or 0) < OWN_TAGS
    )


def _whole(message: Struct, values: Mapping[str, Any]) -> Fields:
    """With the defaults of fields that the version lacks."""
    return {**message.defaults(), **values}


def _mapped(value: Any, one: Callable[[Any], Any]) -> Any:
    """A struct or a sequence of them."""
    if value is None:
        return None
    return [one(each) for each in value] if isinstance(value, Sequence) else one(value)


def _struct_of(each: Field) -> Struct | None:
    kind = each.kind.of if isinstance(each.kind, Array) else each.kind
    return kind if isinstance(kind, Struct) else None


# -------------------------------------------------------------------------------------------------------- kafka-python


@cache
def _all_of_kafka_python() -> dict[tuple[int, str], Any]:
    for part in ("admin", "consumer", "metadata", "producer", "sasl"):
        importlib.import_module(f"kafka.protocol.{part}")
    found = {}
    waiting = list(ApiMessage.__subclasses__())
    while waiting:
        message = waiting.pop()
        waiting += message.__subclasses__()
        if getattr(message, "_json", None) and message._class_version is None:
            found[message.API_KEY, message.type] = message
    return found


def _kafka_python(key: int, direction: Direction) -> Any:
    return _all_of_kafka_python()[key, direction]


def _is_bits(field: Any) -> bool:
    return getattr(field, "_type", None) is _BitField


def _name(each: Field, names: Mapping[str, object]) -> str:
    return "authorized_operations" if each.name in _BITS and each.name not in names else each.name


def _to_kafka_python(kind: Any, message: Struct, version: int, value: Fields) -> Any:
    theirs = kind._struct.fields
    values = {}
    for each in _there(message, version):
        name, item, inner = _name(each, theirs), value[each.name], _struct_of(each)
        field = theirs[name]
        if inner is not None:
            found = inner
            item = _mapped(item, lambda one: _to_kafka_python(field.data_class, found, version, one))  # noqa: B023
        elif _is_bits(field):
            item = _BitField.from_32_bit_field(item & 0xFFFFFFFF)
        if each.tag is None or item != each.start:
            values[name] = item
    return kind(version=version, **values)


def _from_kafka_python(value: DataContainer, message: Struct, version: int) -> Fields:
    theirs = value._struct.fields
    values: Fields = {}
    for each in _there(message, version):
        name, inner = _name(each, theirs), _struct_of(each)
        item = getattr(value, name)
        if inner is not None:
            found = inner
            item = _mapped(item, lambda one: _from_kafka_python(one, found, version))  # noqa: B023
        elif _is_bits(theirs[name]):
            bits = _BitField.to_32_bit_field({31} if item is None else item)
            item = bits - 2**32 if bits >= 2**31 else bits
        elif isinstance(each.start, uuid.UUID):
            item = item or ZERO_ID
        elif isinstance(item, (bytearray, memoryview)):
            item = bytes(item)
        values[each.name] = list(item) if isinstance(item, tuple) else item
    return _whole(message, values)


# ----------------------------------------------------------------------------------------------------------------- kio

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _kio(key: int, direction: Direction, version: int) -> Any:
    load = kio.index.load_request_schema if direction == "request" else kio.index.load_response_schema
    return load(key, version)


@cache
def _hints(entity: type) -> dict[str, Any]:
    return typing.get_type_hints(entity)


def _entity_in(hint: Any) -> Any:
    """The dataclass in ``X``, ``X | None``, ``tuple[X, ...]`` or both."""
    if dataclasses.is_dataclass(hint):
        return hint
    return next((found for each in typing.get_args(hint) if (found := _entity_in(each)) is not None), None)


def _pairs(entity: type, message: Struct, version: int) -> list[tuple[Field, dataclasses.Field[Any]]]:
    """Fields in their order; the names of kio are without units."""
    return list(zip(_there(message, version), dataclasses.fields(entity), strict=True))


def _to_kio(entity: Any, message: Struct, version: int, value: Fields) -> Any:
    values = {}
    for each, theirs in _pairs(entity, message, version):
        item, inner = value[each.name], _struct_of(each)
        kind = theirs.metadata.get("kafka_type")
        if inner is not None:
            found, other = inner, _entity_in(_hints(entity)[theirs.name])
            item = _mapped(item, lambda one: _to_kio(other, found, version, one))  # noqa: B023
        elif kind == "error_code":
            item = kio.schema.errors.ErrorCode(item)
        elif kind in {"timedelta_i32", "timedelta_i64"}:
            item = timedelta(milliseconds=item)
        elif kind == "datetime_i64":
            item = None if item == -1 else _EPOCH + timedelta(milliseconds=item)
        values[theirs.name] = tuple(item) if isinstance(item, list) else item
    return entity(**values)


def _from_kio(value: Any, message: Struct, version: int) -> Fields:
    values: Fields = {}
    for each, theirs in _pairs(type(value), message, version):
        item, inner = getattr(value, theirs.name), _struct_of(each)
        if inner is not None:
            found = inner
            item = _mapped(item, lambda one: _from_kio(one, found, version))  # noqa: B023
        elif isinstance(item, timedelta):
            item = round(item / timedelta(milliseconds=1))
        elif isinstance(item, datetime):
            item = round((item - _EPOCH) / timedelta(milliseconds=1))
        elif item is None and theirs.metadata.get("kafka_type") == "datetime_i64":
            item = -1
        elif isinstance(each.start, uuid.UUID):
            item = item or ZERO_ID
        values[each.name] = list(item) if isinstance(item, tuple) else item
    return _whole(message, values)


# ------------------------------------------------------------------------------------------------- Kafka's definitions


def schema_differences(api: Api, direction: Direction) -> list[str]:
    """The names, versions, tags, nulls and defaults of a message that differ from Kafka's definition.

    kafka-python brings that.
    """
    found = _kafka_python(api.key, direction)
    theirs = found._struct._fields
    flexible = [
        f"{api.name} {direction} {version}: flexible"
        for version in range(api.versions.first, api.versions.last + 1)
        if api.is_flexible(version) != found.flexible_version_q(version)
    ]
    return flexible + list(
        _differences(f"{api.name} {direction}", getattr(api, direction), theirs, api.versions)
    )


def _differences(
    path: str, message: Struct, fields: Sequence[BaseField], versions: Versions
) -> Iterator[str]:
    for version in range(versions.first, versions.last + 1):
        names = {each.name: each for each in fields}
        ours = {_name(each, names): each for each in _there(message, version)}
        theirs = {each.name: each for each in fields if each.for_version_q(version)}
        if list(ours) != list(theirs):
            yield f"{path} {version}: {list(ours)} is not {list(theirs)}"
            continue
        for name, mine in ours.items():
            field, inner = theirs[name], _struct_of(mine)
            if (version in Versions.parse(mine.nullable)) != field.nullable_for_version_q(version):
                yield f"{path}.{name} {version}: null"
            # Where a text may be null, its default is null here in each message.
            if mine.start is not None and inner is None and mine.start != _default(field):
                yield f"{path}.{name} {version}: default"
            if mine.tag != (field.tag if field.tagged_field_q(version) else None):
                yield f"{path}.{name} {version}: tag"
            if inner is not None:
                yield from _differences(f"{path}.{name}", inner, field._fields, Versions(version, version))


def _default(field: Any) -> Any:
    """kafka-python has null for an id of zeros and for bits that nobody asked for."""
    if field.default is not None:
        return field.default
    return NOT_REQUESTED if _is_bits(field) else ZERO_ID
