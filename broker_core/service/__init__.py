"""The use cases of all transports: a server decodes a question, asks one of these, and encodes its answer."""

from __future__ import annotations

from broker_core.service.audit import Action, Attempt, AuditRow, Outcome
from broker_core.service.catalog import Catalog
from broker_core.service.change import Changed, Changes, right_to
from broker_core.service.find import REFUSED_BY_ACLS, Asked, Find, Found, client_count
from broker_core.service.following.change_watch import ChangeWatch
from broker_core.service.following.follower import Change, ChangeEvent, Follower, Renderer
from broker_core.service.following.listing_feed import ListingFeed
from broker_core.service.following.listing_feeds import ListingFeeds
from broker_core.service.following.watcher import Outlet, Watcher
from broker_core.service.namespace_version import read_version, version_text
from broker_core.service.plugin_topics import Known, PluginTopics, partition_names
from broker_core.service.topic_imports import MOST_ASKED, MOST_BYTES, BodyTooLarge

__all__ = [
    "MOST_ASKED",
    "MOST_BYTES",
    "REFUSED_BY_ACLS",
    "Action",
    "Asked",
    "Attempt",
    "AuditRow",
    "BodyTooLarge",
    "Catalog",
    "Change",
    "ChangeEvent",
    "ChangeWatch",
    "Changed",
    "Changes",
    "Find",
    "Follower",
    "Found",
    "Known",
    "ListingFeed",
    "ListingFeeds",
    "Outcome",
    "Outlet",
    "PluginTopics",
    "Renderer",
    "Watcher",
    "client_count",
    "partition_names",
    "read_version",
    "right_to",
    "version_text",
]
