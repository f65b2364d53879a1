"""The use cases of all transports: a server decodes a question, asks one of these, and encodes its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports
from broker_core.service.audit import Action, Attempt, AuditRow, Outcome, fields_text
from broker_core.service.change_topics import Changed, TopicEditor, right_to
from broker_core.service.client_admission import Admission, OtherName, OtherPrincipal
from broker_core.service.failure_pace import FailurePace
from broker_core.service.find_topics import (
    REFUSED_BY_ACLS,
    Find,
    Found,
    TopicAsker,
    client_count,
    is_ordinary,
)
from broker_core.service.following.change_watch import ChangeWatch
from broker_core.service.following.follower import AnswerChange, ChangeEvent, ChangeRenderer, Follower
from broker_core.service.following.listing_feed import ListingFeed
from broker_core.service.following.listing_feeds import FollowedQuestion, ListingFeeds
from broker_core.service.following.watcher import Outlet, Watcher
from broker_core.service.listing_reasons import NeededChange, why_listed
from broker_core.service.live_sessions import Admitted, Ended, LiveSession, LoginAttempt
from broker_core.service.lookups import BrokerSchema, LookupQuestions, LookupService
from broker_core.service.plugin_topics import Known, PluginTopics, partition_names
from broker_core.service.quotas import Quotas, QuotaTurn
from broker_core.service.topic_imports import MOST_AUTHORIZED, MOST_BYTES, BodyTooLarge

if TYPE_CHECKING:
    from broker_core.service.cluster_edits import ClusterEdits
    from broker_core.service.kafka_users import (
        LONGEST_PASSWORD,
        SHORTEST_PASSWORD,
        check_password,
        check_user,
        store_user,
    )
    from broker_core.service.logins import Logins, role_of
    from broker_core.service.visible_topic_tables import Allowed, ListTopics, VisibleTopics

__all__ = [
    "LONGEST_PASSWORD",
    "MOST_AUTHORIZED",
    "MOST_BYTES",
    "REFUSED_BY_ACLS",
    "SHORTEST_PASSWORD",
    "Action",
    "Admission",
    "Admitted",
    "Allowed",
    "AnswerChange",
    "Attempt",
    "AuditRow",
    "BodyTooLarge",
    "BrokerSchema",
    "ChangeEvent",
    "ChangeRenderer",
    "ChangeWatch",
    "Changed",
    "ClusterEdits",
    "Ended",
    "FailurePace",
    "Find",
    "FollowedQuestion",
    "Follower",
    "Found",
    "Known",
    "ListTopics",
    "ListingFeed",
    "ListingFeeds",
    "LiveSession",
    "LoginAttempt",
    "Logins",
    "LookupQuestions",
    "LookupService",
    "NeededChange",
    "OtherName",
    "OtherPrincipal",
    "Outcome",
    "Outlet",
    "PluginTopics",
    "QuotaTurn",
    "Quotas",
    "TopicAsker",
    "TopicEditor",
    "VisibleTopics",
    "Watcher",
    "check_password",
    "check_user",
    "client_count",
    "fields_text",
    "is_ordinary",
    "partition_names",
    "right_to",
    "role_of",
    "store_user",
    "why_listed",
]

# Only some servers verify passwords themselves, or list tables of topics.
__getattr__ = lazy_exports(
    __name__,
    {
        "Allowed": ".visible_topic_tables",
        "LONGEST_PASSWORD": ".kafka_users",
        "SHORTEST_PASSWORD": ".kafka_users",
        "check_password": ".kafka_users",
        "check_user": ".kafka_users",
        "store_user": ".kafka_users",
        "ClusterEdits": ".cluster_edits",
        "ListTopics": ".visible_topic_tables",
        "Logins": ".logins",
        "VisibleTopics": ".visible_topic_tables",
        "role_of": ".logins",
    },
)
