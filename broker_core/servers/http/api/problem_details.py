"""Errors of the HTTP API as problem details (RFC 9457): ``application/problem+json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal

import structlog
from aiohttp import hdrs, web
from pydantic import ConfigDict, Field

from broker_core.catalog import CatalogError, ImportRefused
from broker_core.errors import BrokerCoreError, Cause, ListingFailed
from broker_core.guards import MassDeletion
from broker_core.redaction import cut_short
from broker_core.servers.http.api.json_object import JsonObject

__all__ = [
    "PROBLEM_JSON",
    "Problem",
    "ProblemObject",
    "RequestRefused",
    "problem_of",
    "problem_response",
    "refused",
    "with_headers",
]

PROBLEM_JSON: Final = "application/problem+json"
#: Seconds after which a client may ask again that met a limit.
_RETRY_AFTER: Final = 1
#: The cause of a status, if none is given.
_CAUSES: Final[Mapping[int, Cause]] = {
    400: Cause.BAD_REQUEST,
    401: Cause.UNAUTHENTICATED,
    403: Cause.DENIED,
    404: Cause.NOT_FOUND,
    406: Cause.BAD_REQUEST,
    409: Cause.CONFLICT,
    410: Cause.NOT_FOUND,
    412: Cause.PRECONDITION,
    413: Cause.TOO_LARGE,
    415: Cause.BAD_REQUEST,
    422: Cause.CONFLICT,
    501: Cause.NOT_ALLOWED,
}

#: The texts for a catalogue whose state prevents a change; other refusals are due to the change, and have their own
#: texts.
_STATES: Final[Mapping[Cause, str]] = {
    Cause.UNAVAILABLE: "another writer keeps the catalogue: nothing was changed, try again later",
    Cause.NOT_ALLOWED: "the catalogue of this server can only be read",
    Cause.FULL: "the disk of the catalogue is full: nothing was changed",
    Cause.CATALOG: "the catalogue cannot be written; the log of the server says more",
}

_EXAMPLE: Final[dict[str, Any]] = {
    "type": "about:blank",
    "title": "Bad Request",
    "status": 400,
    "detail": "parameter limit must be a number from 1 to 10000, not '0'",
    "cause": "BAD_REQUEST",
}

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Problem:
    """The problem that an HTTP client gets in place of an answer."""

    status: int
    detail: str
    cause: Cause
    headers: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    #: More members of the object, for programs.
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The words of the status."""
        return HTTPStatus(self.status).phrase


class RequestRefused(BrokerCoreError):
    """An operation refuses a request; the client gets ``problem``."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def refused(
    status: int,
    detail: str,
    cause: Cause | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> RequestRefused:
    """The error by which an operation refuses a request with this status; ``more`` are members of the problem."""
    return RequestRefused(
        Problem(status, detail, _CAUSES[status] if cause is None else cause, headers or {}, more)
    )


def problem_of(error: Exception, request: web.Request) -> Problem:
    """The problem for the client about an error of its request; the log has the details of a mistake."""
    if isinstance(error, RequestRefused):
        return error.problem
    if isinstance(error, ListingFailed):
        return _of_cause(error.cause, error.message, getattr(error, "retry_after", _RETRY_AFTER))
    if isinstance(error, CatalogError):
        return _of_change(error)
    if isinstance(error, MassDeletion):
        loss = error.refusal.loss
        why = f"{error.refusal.why}: nothing was written; max_deletions={loss.removed} allows it"
        return _of_cause(Cause.CONFLICT, why, there=loss.there, deletions=loss.removed)
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return Problem(
            405,
            f"{cut_short(request.path)} does not take {request.method}, only {allowed}",
            Cause.NOT_ALLOWED,
            {str(hdrs.ALLOW): allowed},
        )
    if isinstance(error, web.HTTPNotFound):
        return Problem(404, f"there is nothing at {cut_short(request.path)}", Cause.NOT_FOUND)
    if isinstance(error, web.HTTPException):
        challenges = tuple(
            (hdrs.WWW_AUTHENTICATE, each) for each in error.headers.getall(hdrs.WWW_AUTHENTICATE, ())
        )
        unforeseen = Cause.INTERNAL if error.status >= 500 else Cause.BAD_REQUEST
        return Problem(error.status, error.reason, _CAUSES.get(error.status, unforeseen), challenges)
    _log.error("an HTTP request failed", path=request.path, exc_info=error)
    return Problem(500, "internal error; the log says more", Cause.INTERNAL)


def _of_cause(cause: Cause, detail: str, retry_after: int = _RETRY_AFTER, **more: Any) -> Problem:
    headers = {str(hdrs.RETRY_AFTER): str(retry_after)} if cause.http in {429, 503} else {}
    return Problem(cause.http, detail, cause, headers, more)


def _of_change(error: CatalogError) -> Problem:
    """The problem about a change that the catalogue refused. It names no file of the server; the log does."""
    if isinstance(error, ImportRefused):
        return _of_cause(error.cause, f"line {error.line} of the body: {error.reason}", line=error.line)
    state = _STATES.get(error.cause)
    if state is not None and error.cause is not Cause.UNAVAILABLE:
        _log.error("a change of topics over HTTP failed", error=str(error))
    return _of_cause(error.cause, state or str(error))


class ProblemObject(JsonObject):
    """Description of a problem (RFC 9457)."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [_EXAMPLE]})

    type: Literal["about:blank"]
    title: str = Field(description="The words of the status.")
    status: int = Field(ge=400, le=599)
    detail: str = Field(description="What is wrong, for people.")
    cause: str = Field(
        description="Why, in the words of all transports of the server.",
        json_schema_extra={"enum": [cause.name for cause in Cause]},
    )


def problem_response(problem: Problem) -> web.Response:
    """A problem as a response."""
    content = ProblemObject(
        type="about:blank",
        title=problem.title,
        status=problem.status,
        detail=problem.detail,
        cause=problem.cause.name,
        **problem.more,
    )
    response = web.Response(status=problem.status, text=content.json_line(), content_type=PROBLEM_JSON)
    return with_headers(response, problem)


def with_headers(response: web.Response, problem: Problem) -> web.Response:
    """The response with the headers of a problem, of which several may have one name."""
    pairs = problem.headers.items() if isinstance(problem.headers, Mapping) else problem.headers
    for name, value in pairs:
        response.headers.add(name, value)
    return response
