"""The use cases of all transports: a server decodes a question, asks one of these, and encodes its answer."""

from __future__ import annotations

from broker_core.service.catalog import Catalog
from broker_core.service.following.change_watch import ChangeWatch
from broker_core.service.following.follower import Change, ChangeEvent, Follower, Renderer
from broker_core.service.following.listing_feed import ListingFeed
from broker_core.service.following.listing_feeds import ListingFeeds

__all__ = [
    "Catalog",
    "Change",
    "ChangeEvent",
    "ChangeWatch",
    "Follower",
    "ListingFeed",
    "ListingFeeds",
    "Renderer",
]
