"""``CommandGetTopicsOfNamespace`` as a listing request."""

from __future__ import annotations

from broker_core.access import Asker
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Pipeline, QuestionText
from broker_core.plugin_api import ListingRequest
from broker_core.service import read_question
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar import CommandGetTopicsOfNamespace

__all__ = ["question_text", "read_listing_request"]

_MODES = {mode.value: mode for mode in Mode}


def question_text(command: CommandGetTopicsOfNamespace) -> QuestionText:
    """The question of a command, which may not be valid."""
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
    """The request of a command, and its pattern if that takes a thread to compile: then the request is without it.

    Raises :exc:`ListingFailed` with the code for the client.
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
    return read_question(
        pipeline,
        limits,
        asker,
        namespace,
        mode,
        command.topics_pattern if command.HasField("topics_pattern") else None,
        [(pair.key, pair.value) for pair in command.properties],
        deadline=now + pipeline.options.time_budget,
        topics_hash=command.topics_hash if command.HasField("topics_hash") else None,
    )
