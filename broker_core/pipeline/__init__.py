"""The one path of a listing, from a question to an answer that can be sent; without sockets."""

from __future__ import annotations

from broker_core.pipeline.answer import Answer, QuestionText, QuestionWarning, ReusableAnswer, Trace
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.explanation import explain, pattern_facts
from broker_core.pipeline.pipeline import Pipeline
from broker_core.pipeline.reports.event_sinks import EventSinks, open_event_sinks
from broker_core.pipeline.reports.finished_listings import Ended, QuestionCount, one_line_of_denials
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingTables
from broker_core.pipeline.request.unsupported_patterns import PipelineOptions
from broker_core.pipeline.runs.in_flight import NextRuns
from broker_core.pipeline.topic_questions import TopicQuestions
from broker_core.pipeline.watchable_questions import listing_of_now, unfit_for_watches, unwatchable_pattern

__all__ = [
    "AcceptedAnswer",
    "Answer",
    "ChangeNotices",
    "Ended",
    "EventSinks",
    "ListingTables",
    "NextRuns",
    "Pipeline",
    "PipelineOptions",
    "QuestionCount",
    "QuestionText",
    "QuestionWarning",
    "ReusableAnswer",
    "TopicQuestions",
    "Trace",
    "explain",
    "listing_of_now",
    "one_line_of_denials",
    "open_event_sinks",
    "pattern_facts",
    "unfit_for_watches",
    "unwatchable_pattern",
]
