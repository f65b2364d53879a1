"""The lookup client, by which programs, the command line and the gateway ask a lookup service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.client.authentication import Basic, Tls, Token
from broker_core.client.authentication import single_token as single_token  # for other parts of the core
from broker_core.client.blocking_lookup_client import BlockingLookupClient
from broker_core.client.client_errors import (
    ClientError,
    ConnectionLost,
    ConnectTimeout,
    CredentialsFailed,
    HandshakeRefused,
    InvalidQuestion,
    InvalidServiceUrl,
    OperationTimeout,
    ServerRefused,
    TlsFailed,
    UnexpectedAnswer,
)

# For other parts of the core.
from broker_core.client.client_errors import is_of_identity as is_of_identity
from broker_core.client.client_errors import server_error as server_error
from broker_core.client.client_tls import ClientTls
from broker_core.client.lookup_client import MAX_ANSWER as MAX_ANSWER
from broker_core.client.lookup_client import LookupClient
from broker_core.client.lookup_client import check_seconds as check_seconds
from broker_core.client.loop_bound import LoopBound as LoopBound
from broker_core.client.loop_thread import BlockingClient as BlockingClient
from broker_core.client.loop_thread import blocking as blocking
from broker_core.client.pulsar.credentials import Credentials, OriginalPrincipal
from broker_core.client.pulsar.lookup_session import (
    BrokerAddress,
    LookupSession,
    TopicSchema,
    default_client_version,
)
from broker_core.client.pulsar.lookup_session import WatchReceiver as WatchReceiver
from broker_core.client.pulsar.redirects import broker_url as broker_url
from broker_core.client.pulsar.redirects import follow_redirects as follow_redirects
from broker_core.client.pulsar.service_url import ServiceUrl
from broker_core.client.pulsar.topics_answer import TopicsAnswer
from broker_core.client.shared_questions import SharedQuestions as SharedQuestions
from broker_core.client.topic_listing import ListingWarning, TopicListing
from broker_core.client.topics_question import TopicsQuestion as TopicsQuestion
from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.client.api_client import ApiClient
    from broker_core.client.http.http_service import HttpService as HttpService
    from broker_core.client.pattern_discovery import PatternDiscovery, TopicsChange
    from broker_core.listing import topics_hash

__all__ = [
    "ApiClient",
    "Basic",
    "BlockingLookupClient",
    "BrokerAddress",
    "ClientError",
    "ClientTls",
    "ConnectTimeout",
    "ConnectionLost",
    "Credentials",
    "CredentialsFailed",
    "HandshakeRefused",
    "InvalidQuestion",
    "InvalidServiceUrl",
    "ListingWarning",
    "LookupClient",
    "LookupSession",
    "OperationTimeout",
    "OriginalPrincipal",
    "PatternDiscovery",
    "ServerRefused",
    "ServiceUrl",
    "Tls",
    "TlsFailed",
    "Token",
    "TopicListing",
    "TopicSchema",
    "TopicsAnswer",
    "TopicsChange",
    "UnexpectedAnswer",
    "default_client_version",
    "topics_hash",
]

# Most of them take Arrow, and one HTTP, which a client of small answers starts without.
__getattr__ = lazy_exports(
    __name__,
    {
        "ApiClient": "broker_core.client.api_client",
        "HttpService": "broker_core.client.http.http_service",
        "PatternDiscovery": "broker_core.client.pattern_discovery",
        "TopicsChange": "broker_core.client.pattern_discovery",
        "topics_hash": "broker_core.listing",
    },
)
