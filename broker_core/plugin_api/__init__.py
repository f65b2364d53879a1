"""The interface of plugins: hooks, requests, results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.plugin_api.check_findings import LEVELS, Check
    from broker_core.plugin_api.depends_on import (
        EVERYTHING,
        PROPERTY,
        WORDS,
        AnswerKey,
        checked_words,
        is_of_properties,
        key_of,
        question_text,
        undeclared,
    )
    from broker_core.plugin_api.describe_request import DescribeRequest
    from broker_core.plugin_api.hook_facts import ERROR
    from broker_core.plugin_api.hookspecs import HOOK_FACTS, HookSpecs, ListingOutcome, hookimpl
    from broker_core.plugin_api.http_site import PLACEHOLDER, HttpRequest, HttpRoute, HttpSite
    from broker_core.plugin_api.listing_builder import ListingBuilder
    from broker_core.plugin_api.listing_request import NO_PROPERTIES, ListingRequest, Properties
    from broker_core.plugin_api.listing_result import (
        AnswerKind,
        DefaultLister,
        ListerNotes,
        PolledLister,
        TopicListingResult,
        check_result,
    )
    from broker_core.plugin_api.project_name import PROJECT
    from broker_core.plugin_api.recorded_reads import RecordedProperties, recorded, recorded_asker
    from broker_core.plugin_api.request_lease import Lease, PausedMemory, Pausing, RequestMemory
    from broker_core.plugin_api.request_services import RequestServices
    from broker_core.plugin_api.rest_answer import SAME, RestAnswer, Same

__all__ = [
    "ERROR",
    "EVERYTHING",
    "HOOK_FACTS",
    "LEVELS",
    "NO_PROPERTIES",
    "PLACEHOLDER",
    "PROJECT",
    "PROPERTY",
    "SAME",
    "WORDS",
    "AnswerKey",
    "AnswerKind",
    "Check",
    "DefaultLister",
    "DescribeRequest",
    "HookSpecs",
    "HttpRequest",
    "HttpRoute",
    "HttpSite",
    "Lease",
    "ListerNotes",
    "ListingBuilder",
    "ListingOutcome",
    "ListingRequest",
    "PausedMemory",
    "Pausing",
    "PolledLister",
    "Properties",
    "RecordedProperties",
    "RequestMemory",
    "RequestServices",
    "RestAnswer",
    "Same",
    "TopicListingResult",
    "check_result",
    "checked_words",
    "hookimpl",
    "is_of_properties",
    "key_of",
    "question_text",
    "recorded",
    "recorded_asker",
    "undeclared",
]

# A command that needs a name of it does not wait for all the others.
__getattr__ = lazy_exports(
    __name__,
    {
        "AnswerKey": ".depends_on",
        "AnswerKind": ".listing_result",
        "Check": ".check_findings",
        "DefaultLister": ".listing_result",
        "DescribeRequest": ".describe_request",
        "ERROR": ".hook_facts",
        "EVERYTHING": ".depends_on",
        "HOOK_FACTS": ".hookspecs",
        "HookSpecs": ".hookspecs",
        "HttpRequest": ".http_site",
        "HttpRoute": ".http_site",
        "HttpSite": ".http_site",
        "LEVELS": ".check_findings",
        "Lease": ".request_lease",
        "ListerNotes": ".listing_result",
        "ListingBuilder": ".listing_builder",
        "ListingOutcome": ".hookspecs",
        "ListingRequest": ".listing_request",
        "PolledLister": ".listing_result",
        "NO_PROPERTIES": ".listing_request",
        "PLACEHOLDER": ".http_site",
        "PROJECT": ".project_name",
        "PROPERTY": ".depends_on",
        "PausedMemory": ".request_lease",
        "Pausing": ".request_lease",
        "Properties": ".listing_request",
        "RecordedProperties": ".recorded_reads",
        "RequestMemory": ".request_lease",
        "RequestServices": ".request_services",
        "RestAnswer": ".rest_answer",
        "SAME": ".rest_answer",
        "Same": ".rest_answer",
        "TopicListingResult": ".listing_result",
        "WORDS": ".depends_on",
        "check_result": ".listing_result",
        "checked_words": ".depends_on",
        "hookimpl": ".hookspecs",
        "is_of_properties": ".depends_on",
        "key_of": ".depends_on",
        "question_text": ".depends_on",
        "recorded": ".recorded_reads",
        "recorded_asker": ".recorded_reads",
        "undeclared": ".depends_on",
    },
)
