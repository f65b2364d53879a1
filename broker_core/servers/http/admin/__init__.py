"""Pulsar's HTTP interface, ``/admin/v2`` and ``/lookup/v2``, for `pulsar-admin` and ``http://`` service URLs.

It is the part of a broker's interface about which topics exist.
docs/reference/pulsar-behaviour.md#the-web-service-of-a-broker
"""

from __future__ import annotations

from aiohttp import web

from broker_core.servers.http.admin import listings, lookups, namespaces, topics
from broker_core.servers.http.admin.paths import ADMIN, LOOKUP, first_values
from broker_core.servers.http.api import Admit, ApiServices, HttpApi
from broker_core.servers.http.api.json_object import json_response
from broker_core.servers.http.api.problem_details import Problem, with_headers

__all__ = ["admin_apis"]


def admin_apis(services: ApiServices, admit: Admit) -> list[HttpApi]:
    """The interface of a server, as one API for each of its two paths. ``admit`` gives the asker."""
    operations = [
        *namespaces.operations(),
        *listings.operations(),
        *lookups.operations(),
        *topics.operations(),
    ]
    return [
        HttpApi(
            prefix,
            [operation for operation in operations if operation.path.startswith(prefix)],
            services,
            admit,
            form=_reason_response,
            read=first_values,
        )
        for prefix in (ADMIN, LOOKUP)
    ]


def _reason_response(problem: Problem) -> web.Response:
    """A problem as the web service of a broker gives it: ``{"reason": "..."}``."""
    status = problem.status
    if status == problem.cause.http:
        status = problem.cause.web_service
    return with_headers(json_response(status, {"reason": problem.detail}), problem)
