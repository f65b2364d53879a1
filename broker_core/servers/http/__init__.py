"""The HTTP server: metrics for Prometheus, health and readiness for operators, an API for programs."""

from __future__ import annotations

from broker_core.servers.http.admin_socket import (
    AdminSocket,
    AdminSocketError,
    AdminSocketInUse,
    check_place,
)
from broker_core.servers.http.api import ApiServices, CheckResult, HttpMetrics
from broker_core.servers.http.frequent_questions import allowed_questions
from broker_core.servers.http.http_access import HttpAccess, ProtectedFromAll
from broker_core.servers.http.http_servers import HttpServers
from broker_core.servers.http.operator_endpoints import Endpoints, Readiness
from broker_core.servers.http.server import HttpServer
from broker_core.servers.http.site_files import check_files

__all__ = [
    "AdminSocket",
    "AdminSocketError",
    "AdminSocketInUse",
    "ApiServices",
    "CheckResult",
    "Endpoints",
    "HttpAccess",
    "HttpMetrics",
    "HttpServer",
    "HttpServers",
    "ProtectedFromAll",
    "Readiness",
    "allowed_questions",
    "check_files",
    "check_place",
]
