"""broker-core answers one question for messaging clients: which topics of this namespace match, for me?

A plugin needs no more than the names exported here.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from broker_core.hookspecs import hookimpl
from broker_core.listing import Listing
from broker_core.listing_request import Asker, ListingRequest
from broker_core.listing_result import TopicListingResult
from broker_core.names import Mode, NamespaceName, TopicName

__all__ = [
    "Asker",
    "Listing",
    "ListingRequest",
    "Mode",
    "NamespaceName",
    "TopicListingResult",
    "TopicName",
    "__version__",
    "hookimpl",
]

try:
    __version__ = version("broker-core")
except PackageNotFoundError:  # a source tree that nobody installed
    __version__ = "0+unknown"
