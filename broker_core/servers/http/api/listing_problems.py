"""Problems of listings over HTTP: reports of refusals, warnings about questions, and the part of a pattern to blame."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from aiohttp import web

from broker_core.access import Asker
from broker_core.compact_json import ascii_json
from broker_core.errors import BrokerCoreError, Cause, ListingFailed
from broker_core.patterns import refused_part
from broker_core.pipeline import Answer, QuestionText, QuestionWarning
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.parameters import flag_parameter
from broker_core.servers.http.api.problem_details import RequestRefused, problem_of, refused
from broker_core.servers.http.api.services import ApiServices

__all__ = [
    "UNFILTERED",
    "WARNINGS",
    "namespace_of",
    "refused_parts_shown",
    "report_refusal",
    "require_filtered",
    "sending",
    "warning_headers",
    "warning_members",
]

#: Labels of metrics for refusals by HTTP itself; ``bad_request`` for all others.
_REASONS: Final = {
    Cause.NAME: "bad_namespace",
    Cause.NOT_FOUND: "bad_namespace",
    Cause.PATTERN: "bad_pattern",
}


@contextmanager
def sending(answer: Answer) -> Iterator[None]:
    """``with sending(answer):`` the block sends it, and it is released."""
    try:
        yield
    except ConnectionError:  # the client is gone
        raise
    except Exception as error:
        answer.release(_failure(error))
        if isinstance(error, BrokerCoreError):
            error.reported = True
        raise
    finally:
        answer.release()


def report_refusal(services: ApiServices, question: QuestionText, asker: Asker, error: Exception) -> None:
    """Count the error of a request for a listing, and report it unless it is reported already."""
    failure = _failure(error)
    services.metrics.refused(failure.reason)
    services.pipeline.refused(question, asker, failure)


def namespace_of(request: web.Request) -> str:
    """The namespace in the path of a request, which may be no valid one."""
    return f"{request.match_info['tenant']}/{request.match_info['namespace']}"


def _failure(error: Exception) -> ListingFailed:
    """An error as the failure of a listing."""
    if isinstance(error, ListingFailed):
        return error
    if isinstance(error, RequestRefused):
        cause = error.problem.cause
        failure = ListingFailed(str(error), cause=cause, reason=_REASONS.get(cause, "bad_request"))
        failure.reported = error.reported
        return failure
    return ListingFailed(f"Internal error: {type(error).__name__}", cause=Cause.INTERNAL, reason="internal")


#: The header with the warnings as a JSON array in ASCII, for the forms that have no place for them.
WARNINGS: Final = "Topics-Warnings"
UNFILTERED: Final = flag_parameter(
    "unfiltered",
    "Whether a pattern that the server does not apply (RE2 cannot run it, or `patterns.evaluate` is false) gets all "
    "topics, which the client filters then; otherwise it is the error 400.",
)


def require_filtered(request: ApiRequest, warnings: Sequence[QuestionWarning]) -> None:
    """Raise the error 400 if the server did not apply the pattern, and the client does not say that it will."""
    for warning in warnings:
        if warning.kind == "unfiltered" and not request.values.get(UNFILTERED.name):
            raise refused(
                400,
                f"{warning.text}; unfiltered=true asks for all of them",
                Cause.PATTERN,
                retry_with="unfiltered=true",
            )


def warning_headers(warnings: Sequence[QuestionWarning]) -> dict[str, str]:
    """The header with the warnings, if there are any."""
    texts = _texts(warnings)
    return {WARNINGS: ascii_json(texts)} if texts else {}


def warning_members(warnings: Sequence[QuestionWarning]) -> dict[str, Any]:
    """The member of a JSON object with the warnings, if there are any."""
    texts = _texts(warnings)
    return {"warnings": texts} if texts else {}


def _texts(warnings: Sequence[QuestionWarning]) -> list[str]:
    """All warnings but the one that a client expects by ``unfiltered``."""
    return [warning.text for warning in warnings if warning.kind != "unfiltered"]


@asynccontextmanager
async def refused_parts_shown(request: ApiRequest, pattern: str | None) -> AsyncIterator[None]:
    """Give errors with the cause ``PATTERN`` the member ``error``: ``reason``, ``offset`` and ``length``.

    Offset and length count characters of the pattern as it was sent, and are ``null`` if no part of it is to blame.
    """
    try:
        yield
    except (ListingFailed, RequestRefused) as error:
        problem = problem_of(error, request.http)
        if pattern is None or problem.cause is not Cause.PATTERN:
            raise
        part = await request.services.pipeline.workers.call(request.asker, partial(refused_part, pattern))
        if part is None:
            raise
        where = {"reason": part.reason, "offset": part.offset, "length": part.length}
        raise RequestRefused(replace(problem, more={**problem.more, "error": where})) from None
