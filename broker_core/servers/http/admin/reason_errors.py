"""Errors as the web service of a broker gives them: ``{"reason": "..."}``."""

from __future__ import annotations

from aiohttp import web

from broker_core.servers.http.api.problem_details import Problem, with_headers
from broker_core.servers.http.json_responses import json_response

__all__ = ["reason_response"]


def reason_response(problem: Problem) -> web.Response:
    """A problem as a response. docs/reference/pulsar-behaviour.md#the-web-service-of-a-broker"""
    status = problem.status
    if status == problem.cause.http:
        status = problem.cause.web_service
    return with_headers(json_response(status, {"reason": problem.detail}), problem)
