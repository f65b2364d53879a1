"""Errors as the web service of a broker gives them: ``{"reason": "..."}``."""

from __future__ import annotations

import json

from aiohttp import web

from broker_core.servers.http.api.problem_details import Problem, with_headers

__all__ = ["reason_response"]


def reason_response(problem: Problem) -> web.Response:
    """A problem as a response. docs/reference/pulsar-behaviour.md#the-web-service-of-a-broker"""
    status = problem.status
    if status == problem.cause.http:
        status = problem.cause.web_service
    response = web.Response(
        status=status, text=json.dumps({"reason": problem.detail}) + "\n", content_type="application/json"
    )
    return with_headers(response, problem)
