"""``CommandGetTopicsOfNamespace`` as a listing request, with every bound on what a client may send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker_core.access.asker import Asker
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Pipeline, QuestionText
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.request_properties import NO_PROPERTIES, Properties
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar import CommandGetTopicsOfNamespace, KeyValue

__all__ = ["question_text", "read_listing_request"]

_MODES = {mode.value: mode for mode in Mode}


def question_text(command: CommandGetTopicsOfNamespace) -> QuestionText:
    """What a command asks, which may be no valid question."""
    mode = _MODES.get(command.mode)
    return QuestionText(
        command.namespace,
        None if mode is None else mode.name,
        command.topics_pattern if command.HasField("topics_pattern") else None,
        ((pair.key, pair.value) for pair in command.properties),
    )


def read_listing_request(
    command: CommandGetTopicsOfNamespace,
    asker: Asker,
    pipeline: Pipeline,
    limits: LimitsSettings,
    now: float,
) -> tuple[ListingRequest, str | None]:
    """The request of a command, and its pattern where that takes a thread to compile: the request is without it then.

    Raises :exc:`ListingFailed` with the code that the client is told.
    """
    try:
        namespace = NamespaceName.parse(command.namespace)
    except InvalidName as error:
        raise ListingFailed(str(error), cause=Cause.NAME, reason="bad_namespace") from None
    mode = _MODES.get(command.mode)
    if mode is None:
        raise ListingFailed(
            f"Invalid mode {command.mode}: one of 0 (persistent), 1 (non-persistent), 2 (all)",
            cause=Cause.BAD_REQUEST,
            reason="bad_request",
        )
    text = command.topics_pattern if command.HasField("topics_pattern") else None
    # A client that must pass a gate first, or may not list this, costs nothing before that.
    later = text is None or not pipeline.passes_now(asker, namespace)
    pattern = None if text is None or later else pipeline.compile_now(text)
    request = ListingRequest(
        namespace=namespace,
        mode=mode,
        pattern=pattern,
        topics_hash=command.topics_hash if command.HasField("topics_hash") else None,
        properties=_properties(command.properties, limits) if command.properties else NO_PROPERTIES,
        asker=asker,
        deadline=now + pipeline.options.time_budget,
    )
    return request, text if pattern is None else None


def _properties(pairs: Sequence[KeyValue], limits: LimitsSettings) -> Mapping[str, str]:
    """The pairs as a mapping; the last of a repeated key wins, as at the broker."""
    if len(pairs) > limits.properties:
        raise ListingFailed(
            f"{len(pairs)} properties in one request, at most {limits.properties} are allowed (limits.properties)",
            cause=Cause.BAD_REQUEST,
            reason="bad_request",
        )
    size = sum(len(pair.key.encode()) + len(pair.value.encode()) for pair in pairs)
    if size > limits.property_bytes:
        raise ListingFailed(
            f"properties of {size} bytes in one request, at most {limits.property_bytes} are allowed "
            "(limits.property_bytes)",
            cause=Cause.BAD_REQUEST,
            reason="bad_request",
        )
    return Properties((pair.key, pair.value) for pair in pairs)
