"""broker-core answers one question for messaging clients: which topics of this namespace match, for me?

Plugins only need the names exported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.access import Access, Asker, Peer, Principal, Refused
    from broker_core.broker import BrokerHandle
    from broker_core.errors.causes import Cause
    from broker_core.listing import Details, EncodedNames, Listing, Page, Position, Selection
    from broker_core.memory import BoundedCache
    from broker_core.names import Mode, NamespaceName, TopicName
    from broker_core.plugin_api.check_findings import Check
    from broker_core.plugin_api.describe_request import DescribeRequest
    from broker_core.plugin_api.hookspecs import hookimpl
    from broker_core.plugin_api.http_site import HttpRequest, HttpSite
    from broker_core.plugin_api.listing_builder import ListingBuilder
    from broker_core.plugin_api.listing_request import ListingRequest
    from broker_core.plugin_api.listing_result import TopicListingResult
    from broker_core.plugin_api.request_lease import Lease
    from broker_core.plugin_api.rest_answer import SAME, RestAnswer

    __version__: str

__all__ = [
    "SAME",
    "Access",
    "Asker",
    "BoundedCache",
    "BrokerHandle",
    "Cause",
    "Check",
    "DescribeRequest",
    "Details",
    "EncodedNames",
    "HttpRequest",
    "HttpSite",
    "Lease",
    "Listing",
    "ListingBuilder",
    "ListingRequest",
    "Mode",
    "NamespaceName",
    "Page",
    "Peer",
    "Position",
    "Principal",
    "Refused",
    "RestAnswer",
    "Selection",
    "TopicListingResult",
    "TopicName",
    "__version__",
    "hookimpl",
]

# Arrow and RE2 take long to import, and `broker-core --help` does not need them.
_imported: Final = lazy_exports(
    __name__,
    {
        "Access": ".access",
        "Asker": ".access",
        "BoundedCache": ".memory",
        "BrokerHandle": ".broker",
        "Cause": ".errors.causes",
        "Check": ".plugin_api.check_findings",
        "DescribeRequest": ".plugin_api.describe_request",
        "Details": ".listing",
        "EncodedNames": ".listing",
        "HttpRequest": ".plugin_api.http_site",
        "HttpSite": ".plugin_api.http_site",
        "Lease": ".plugin_api.request_lease",
        "Listing": ".listing",
        "ListingBuilder": ".plugin_api.listing_builder",
        "ListingRequest": ".plugin_api.listing_request",
        "Mode": ".names",
        "NamespaceName": ".names",
        "Page": ".listing",
        "Peer": ".access",
        "Position": ".listing",
        "Principal": ".access",
        "Refused": ".access",
        "RestAnswer": ".plugin_api.rest_answer",
        "SAME": ".plugin_api.rest_answer",
        "Selection": ".listing",
        "TopicListingResult": ".plugin_api.listing_result",
        "TopicName": ".names",
        "hookimpl": ".plugin_api.hookspecs",
    },
)


def __getattr__(name: str) -> Any:
    return _version() if name == "__version__" else _imported(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("broker-core")
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"
