"""The HTTP server: metrics for Prometheus, health and readiness for operators, an API for programs."""

from __future__ import annotations

from broker_core.servers.http.admin_socket import (
    AdminSocket,
    AdminSocketError,
    AdminSocketInUse,
    check_place,
)
from broker_core.servers.http.allowed_questions import AllowedQuestions
from broker_core.servers.http.api import Admit, Api, ApiServices, v1_api
from broker_core.servers.http.endpoints import Endpoints, Readiness
from broker_core.servers.http.http_access import HttpAccess, Needs, ProtectedFromAll
from broker_core.servers.http.http_asker import operator_of
from broker_core.servers.http.server import HttpListenError, HttpServer
from broker_core.servers.http.topic_writes import TopicWrites

__all__ = [
    "AdminSocket",
    "AdminSocketError",
    "AdminSocketInUse",
    "Admit",
    "AllowedQuestions",
    "Api",
    "ApiServices",
    "Endpoints",
    "HttpAccess",
    "HttpListenError",
    "HttpServer",
    "Needs",
    "ProtectedFromAll",
    "Readiness",
    "TopicWrites",
    "check_place",
    "operator_of",
    "v1_api",
]
