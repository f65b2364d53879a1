"""Commands: decoded from the bytes of a frame, and encoded as whole frames.

Decoding trusts nothing: a command that lacks a required field, or whose strings are not UTF-8, or that lacks the body
of its type, is a :exc:`~broker_core.wire.pulsar.frames.FrameError`. A number outside of an enum is kept
for the caller to refuse.

The answer to a listing is made around topics that are encoded already: a listing holds each name as the bytes of its
protobuf field (:mod:`broker_core.listing.fields.topic_field`). The answer is a head, a run of those bytes and a tail:
nothing is copied, and nothing is done per topic. Its exact size is known before it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from broker_core.errors import ServerError
from broker_core.listing import varint
from broker_core.wire.pulsar.error_answers import awaits_answer, refusal_in_own_form
from broker_core.wire.pulsar.frames import FrameError, frame
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import (
    AuthData,
    BaseCommand,
    CommandConnect,
    CommandConnected,
    CommandError,
    CommandGetOrCreateSchema,
    CommandGetSchema,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    CommandSuccess,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
    FeatureFlags,
    KeyValue,
)

__all__ = [
    "CONNECTION_REQUEST_ID",
    "PROTOCOL_VERSION",
    "REFRESH",
    "WARNING",
    "auth_challenge",
    "auth_method_of",
    "auth_response",
    "close_watcher",
    "command_name",
    "connect",
    "connected",
    "decode",
    "encode",
    "error",
    "error_text",
    "get_or_create_schema",
    "get_schema",
    "get_topics",
    "get_topics_response_head",
    "is_answered",
    "lookup",
    "lookup_response",
    "partitioned_metadata",
    "partitioned_metadata_response",
    "ping",
    "pong",
    "refuse",
    "request_id_of",
    "success",
    "watch_topics",
]

#: The number of a field with a warning about the request, for the clients of this project; Pulsar does not have it.
WARNING: Final = 1032

# Keys of protobuf fields: number << 3 | wire type.
_TYPE: Final = b"\x08\x21"  # BaseCommand.type = GET_TOPICS_OF_NAMESPACE_RESPONSE
_BODY: Final = b"\x8a\x02"  # BaseCommand.getTopicsOfNamespaceResponse, a message of the length that follows
_REQUEST_ID: Final = b"\x08"
# filtered (3) before the hash (4), changed (5) after it.
_FILTERED: Final = (b"\x18\x00", b"\x18\x01")
_HASH: Final = b"\x22"
_CHANGED: Final = (b"\x28\x00", b"\x28\x01")
_WARNING_KEY: Final = varint(WARNING << 3 | 2)


def get_topics_response_head(
    request_id: int,
    fields_size: int,
    *,
    topics_hash: str | None,
    filtered: bool,
    changed: bool = True,
    warnings: Iterable[str] = (),
) -> tuple[bytes, bytes]:
    """Head and tail: head, ``fields_size`` bytes of encoded topics and tail make one whole frame.

    ``warnings`` are for a client that reads :data:`WARNING`.

    Raises :exc:`FrameError` if that would be more than the protocol can carry (2 GiB).
    """
    tail = _tail(topics_hash, filtered, changed)
    for text in warnings:
        encoded = text.encode("utf-8", "replace")
        tail += _WARNING_KEY + varint(len(encoded)) + encoded
    request = _REQUEST_ID + varint(request_id)
    body_size = len(request) + fields_size + len(tail)
    start = _TYPE + _BODY + varint(body_size) + request
    return frame(start, fields_size + len(tail), shown="an answer"), tail


@lru_cache(maxsize=256)  # the listings that are requested repeatedly
def _tail(topics_hash: str | None, filtered: bool, changed: bool) -> bytes:
    if topics_hash is None:
        return _FILTERED[filtered] + _CHANGED[changed]
    encoded = topics_hash.encode()
    return _FILTERED[filtered] + _HASH + varint(len(encoded)) + encoded + _CHANGED[changed]


#: The newest version of the protocol that is spoken here; a server answers the smaller of both sides'.
PROTOCOL_VERSION: Final = 21

#: The request id of an ERROR that is about the connection, not about a request (-1 as an unsigned number).
CONNECTION_REQUEST_ID: Final = 2**64 - 1

#: The data of an AUTH_CHALLENGE that asks for new credentials (Pulsar's ``AuthData.REFRESH_AUTH_DATA_BYTES``).
REFRESH: Final = b"PulsarAuthRefresh"

#: Methods by the enum from before ``auth_method_name``.
_LEGACY_METHODS: Final = {0: "none", 1: "ycav1", 2: "athens"}

_MAX_MESSAGE: Final = 4096  # characters of an error's text; the text of an exception may hold anything

#: The field of a type's body, by its number, which is the type's.
_BODIES: Final[Mapping[int, str]] = {
    number: field.name for number, field in BaseCommand.DESCRIPTOR.fields_by_number.items() if number != 1
}
#: The required bodies: PING and PONG are valid with and without their empty body.
_REQUIRED_BODIES: Final[Mapping[int, str]] = {
    number: name for number, name in _BODIES.items() if name not in ("ping", "pong")
}

_parse = BaseCommand.FromString


def decode(command: bytes) -> BaseCommand:
    """The command of a frame. Raises :exc:`FrameError` for anything but a complete command."""
    try:
        decoded = _parse(command)
    except DecodeError as unparsable:
        raise FrameError(f"unparsable command of {len(command)} bytes: {unparsable}") from None
    if not decoded.IsInitialized():
        missing = ", ".join(decoded.FindInitializationErrors())  # type: ignore[attr-defined]  # not in the stubs
        raise FrameError(f"incomplete {command_name(decoded.type)} command: it lacks {missing}")
    body = _REQUIRED_BODIES.get(decoded.type)
    if body is not None and not decoded.HasField(body):  # type: ignore[arg-type]  # a name out of the descriptor
        raise FrameError(f"incomplete {command_name(decoded.type)} command: it lacks its body")
    return decoded


def encode(command: BaseCommand) -> bytes:
    """The whole frame of a command."""
    return frame(command.SerializeToString())


def command_name(number: int) -> str:
    """The protocol's name of a type of command, or its number if it has no name here."""
    value = BaseCommand.Type.DESCRIPTOR.values_by_number.get(number)
    return value.name if value is not None else f"type {number}"


def request_id_of(command: BaseCommand) -> int | None:
    """The request id of any command that has one, so that it can be answered with an error."""
    body = getattr(command, _BODIES.get(command.type, ""), None)
    if body is None or "request_id" not in body.DESCRIPTOR.fields_by_name or not body.HasField("request_id"):
        return None
    request_id: int = body.request_id
    return request_id


# ---- handshake and keep-alive ----------------------------------------------------------------------------


def connect(
    client_version: str,
    *,
    protocol_version: int = PROTOCOL_VERSION,
    auth_method_name: str = "none",
    auth_data: bytes | None = None,
    original_principal: str | None = None,
    original_auth_data: str | None = None,
    original_auth_method: str | None = None,
    feature_flags: FeatureFlags | None = None,
) -> bytes:
    """CONNECT, the first command of a client. Only a proxy names an original principal, for which it asks."""
    body = CommandConnect(
        client_version=client_version,
        protocol_version=protocol_version,
        auth_method_name=auth_method_name,
        auth_data=auth_data,
        original_principal=original_principal,
        original_auth_data=original_auth_data,
        original_auth_method=original_auth_method,
        feature_flags=feature_flags,
    )
    return encode(BaseCommand(type=BaseCommand.CONNECT, connect=body))


def connected(
    server_version: str,
    *,
    protocol_version: int,
    max_message_size: int | None,
    feature_flags: FeatureFlags | None = None,
) -> bytes:
    """CONNECTED; ``max_message_size`` in bytes, ``None`` to leave it out. Features that are not named are off."""
    body = CommandConnected(
        server_version=server_version,
        protocol_version=protocol_version,
        max_message_size=max_message_size,
        feature_flags=feature_flags,
    )
    return encode(BaseCommand(type=BaseCommand.CONNECTED, connected=body))


def auth_method_of(connect: CommandConnect) -> str | None:
    """The method that a client names, which may be empty; for very old clients from the enum; ``None`` for none."""
    if connect.HasField("auth_method_name"):
        return connect.auth_method_name
    if connect.HasField("auth_method"):
        return _LEGACY_METHODS.get(connect.auth_method, "unknown")
    return None


def auth_challenge(
    server_version: str, auth_method_name: str, data: bytes, *, protocol_version: int
) -> bytes:
    """AUTH_CHALLENGE; with :data:`REFRESH` it asks a connected client for new credentials."""
    command = BaseCommand(type=BaseCommand.AUTH_CHALLENGE)
    command.authChallenge.server_version = server_version
    command.authChallenge.protocol_version = protocol_version
    command.authChallenge.challenge.CopyFrom(AuthData(auth_method_name=auth_method_name, auth_data=data))
    return encode(command)


def auth_response(client_version: str, auth_method_name: str, auth_data: bytes) -> bytes:
    """AUTH_RESPONSE, a client's answer to AUTH_CHALLENGE."""
    command = BaseCommand(type=BaseCommand.AUTH_RESPONSE)
    command.authResponse.client_version = client_version
    command.authResponse.protocol_version = PROTOCOL_VERSION
    command.authResponse.response.CopyFrom(AuthData(auth_method_name=auth_method_name, auth_data=auth_data))
    return encode(command)


def _empty(number: BaseCommand.Type.ValueType) -> bytes:
    command = BaseCommand(type=number)
    getattr(command, _BODIES[number]).SetInParent()
    return encode(command)


_PING: Final = _empty(BaseCommand.PING)
_PONG: Final = _empty(BaseCommand.PONG)


def ping() -> bytes:
    """PING, which a living peer answers at once."""
    return _PING


def pong() -> bytes:
    """PONG, the answer to PING."""
    return _PONG


# ---- answers that any request may get --------------------------------------------------------------------


def success(request_id: int) -> bytes:
    """SUCCESS, the answer to CLOSE_* and WATCH_TOPIC_LIST_CLOSE."""
    return encode(BaseCommand(type=BaseCommand.SUCCESS, success=CommandSuccess(request_id=request_id)))


def error(request_id: int, code: ServerError, message: str) -> bytes:
    """ERROR, the answer to any request; no client that is connected closes its connection for it."""
    body = CommandError(request_id=request_id, error=code, message=error_text(message))
    return encode(BaseCommand(type=BaseCommand.ERROR, error=body))


def error_text(message: str) -> str:
    """The text of an error for sending: of bounded length, and without lone surrogates."""
    if len(message) > _MAX_MESSAGE:
        message = message[: _MAX_MESSAGE - 1] + "…"
    try:
        message.encode()
    except UnicodeEncodeError:
        return message.encode("utf-8", "backslashreplace").decode()
    return message


# ---- requests and answers of a lookup service ------------------------------------------------------------


def get_topics(
    request_id: int,
    namespace: str,
    mode: int = 0,
    *,
    topics_pattern: str | None = None,
    topics_hash: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> bytes:
    """GET_TOPICS_OF_NAMESPACE; ``mode`` is a number of :class:`broker_core.names.Mode`."""
    body = CommandGetTopicsOfNamespace(
        request_id=request_id,
        namespace=namespace,
        mode=mode,
        topics_pattern=topics_pattern,
        topics_hash=topics_hash,
        properties=_pairs(properties),
    )
    return encode(BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=body))


def watch_topics(
    request_id: int, watcher_id: int, namespace: str, topics_pattern: str, topics_hash: str | None = None
) -> bytes:
    """WATCH_TOPIC_LIST; with the number of an existing watcher, it asks whether the watcher has all topics."""
    body = CommandWatchTopicList(
        request_id=request_id,
        watcher_id=watcher_id,
        namespace=namespace,
        topics_pattern=topics_pattern,
        topics_hash=topics_hash,
    )
    return encode(BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST, watchTopicList=body))


def close_watcher(request_id: int, watcher_id: int) -> bytes:
    """WATCH_TOPIC_LIST_CLOSE."""
    body = CommandWatchTopicListClose(request_id=request_id, watcher_id=watcher_id)
    return encode(BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST_CLOSE, watchTopicListClose=body))


def partitioned_metadata(request_id: int, topic: str, *, auto_create: bool = True) -> bytes:
    """PARTITIONED_METADATA; without ``auto_create`` the request does not make a missing topic."""
    body = CommandPartitionedTopicMetadata(
        topic=topic, request_id=request_id, metadata_auto_creation_enabled=auto_create
    )
    return encode(BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partitionMetadata=body))


def partitioned_metadata_response(request_id: int, partitions: int) -> bytes:
    """PARTITIONED_METADATA_RESPONSE: how many partitions a topic has; 0 for one that is not partitioned."""
    body = CommandPartitionedTopicMetadataResponse(
        partitions=partitions,
        request_id=request_id,
        response=CommandPartitionedTopicMetadataResponse.Success,
    )
    return encode(BaseCommand(type=BaseCommand.PARTITIONED_METADATA_RESPONSE, partitionMetadataResponse=body))


def lookup(
    request_id: int,
    topic: str,
    *,
    authoritative: bool = False,
    listener_name: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> bytes:
    """LOOKUP: which broker serves a topic."""
    body = CommandLookupTopic(
        topic=topic,
        request_id=request_id,
        authoritative=authoritative,
        advertised_listener_name=listener_name,
        properties=_pairs(properties),
    )
    return encode(BaseCommand(type=BaseCommand.LOOKUP, lookupTopic=body))


def lookup_response(request_id: int, url: str, tls_url: str | None) -> bytes:
    """LOOKUP_RESPONSE: connect to the server with these URLs."""
    body = CommandLookupTopicResponse(
        brokerServiceUrl=url,
        brokerServiceUrlTls=tls_url,
        response=CommandLookupTopicResponse.Connect,
        request_id=request_id,
        authoritative=True,
    )
    return encode(BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=body))


def get_schema(request_id: int, topic: str, schema_version: bytes | None = None) -> bytes:
    """GET_SCHEMA: the schema of a topic, the newest if no version is named."""
    body = CommandGetSchema(request_id=request_id, topic=topic, schema_version=schema_version)
    return encode(BaseCommand(type=BaseCommand.GET_SCHEMA, getSchema=body))


def get_or_create_schema(request_id: int, topic: str, schema: bytes) -> bytes:
    """GET_OR_CREATE_SCHEMA: the version of a schema, which becomes the topic's; ``schema`` is an encoded ``Schema``."""
    body = CommandGetOrCreateSchema(request_id=request_id, topic=topic, schema=schema)
    return encode(BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA, getOrCreateSchema=body))


def is_answered(command: BaseCommand) -> bool:
    """Whether the sender of a command waits for an answer."""
    return awaits_answer(command, request_id_of(command))


def refuse(command: BaseCommand, code: ServerError, message: str) -> bytes:
    """The refusal of any request, in the form of its answers: an ERROR if they have none of their own.

    A command that has no answer gets an ERROR about the connection.
    """
    request_id = request_id_of(command)
    answer = refusal_in_own_form(command, request_id, code, error_text(message))
    if answer is not None:
        return encode(answer)
    return error(CONNECTION_REQUEST_ID if request_id is None else request_id, code, message)


def _pairs(properties: Mapping[str, str] | None) -> Iterable[KeyValue] | None:
    return [KeyValue(key=key, value=value) for key, value in properties.items()] if properties else None
