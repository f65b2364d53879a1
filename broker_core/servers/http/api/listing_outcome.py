"""Reports of listings that HTTP itself refuses, or whose answers cannot be sent, like those of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web

from broker_core.access import Asker
from broker_core.errors import BrokerCoreError, Cause, ListingFailed
from broker_core.pipeline import Answer, QuestionText
from broker_core.servers.http.api.problem_details import RequestRefused
from broker_core.servers.http.api.services import ApiServices

__all__ = ["namespace_of", "report_refusal", "sending"]

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
