"""The question of a client, with every bound on its parts: for all transports, and for explaining a listing."""

from __future__ import annotations

from collections.abc import Sequence

from broker_core.access import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api import NO_PROPERTIES, ListingRequest, Properties
from broker_core.settings import LimitsSettings

__all__ = ["read_question"]


def read_question(
    pipeline: Pipeline,
    limits: LimitsSettings,
    asker: Asker,
    namespace: NamespaceName,
    mode: Mode,
    pattern: str | None,
    properties: Sequence[tuple[str, str]],
    *,
    deadline: float,
    topics_hash: str | None = None,
) -> tuple[ListingRequest, str | None]:
    """The question, and its pattern if that takes a thread to compile: then the question is without it.

    Of a repeated key of ``properties`` the last counts, as at a broker; ``deadline`` is in loop time. Raises
    :exc:`ListingFailed`.
    """
    # A client that must pass a gate first, or may not list this, costs nothing before that.
    later = pattern is None or not pipeline.passes_now(asker, namespace)
    compiled = None if pattern is None or later else pipeline.compile_now(pattern)
    question = ListingRequest(
        namespace=namespace,
        mode=mode,
        pattern=compiled,
        topics_hash=topics_hash,
        properties=_checked(properties, limits) if properties else NO_PROPERTIES,
        asker=asker,
        deadline=deadline,
    )
    return question, pattern if compiled is None else None


def _checked(pairs: Sequence[tuple[str, str]], limits: LimitsSettings) -> Properties:
    if len(pairs) > limits.properties:
        raise _too_many(f"{len(pairs)} properties", limits.properties, "limits.properties")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in pairs)
    if size > limits.property_bytes:
        raise _too_many(f"properties of {size} bytes", limits.property_bytes, "limits.property_bytes")
    return Properties(pairs)


def _too_many(what: str, most: int, setting: str) -> ListingFailed:
    return ListingFailed(
        f"{what} in one request, at most {most} are allowed ({setting})",
        cause=Cause.BAD_REQUEST,
        reason="bad_request",
    )
