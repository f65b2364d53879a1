"""The error of a pattern that is refused, with the part of it that is to blame and has to be mended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from broker_core.errors import Cause, ListingFailed
from broker_core.patterns import refused_part
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.problem_details import RequestRefused, problem_of

__all__ = ["refused_parts_shown"]


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
