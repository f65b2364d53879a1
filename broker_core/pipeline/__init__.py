"""The one path of a listing, from a question to an answer that can be sent; without sockets."""

from __future__ import annotations

from broker_core.pipeline.answer import Answer, QuestionWarning, Trace
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.denial_lines import one_line_of_denials
from broker_core.pipeline.explanation import explain, pattern_facts
from broker_core.pipeline.in_flight import NextRuns
from broker_core.pipeline.listing_in_progress import AcceptedAnswer
from broker_core.pipeline.options import PipelineOptions
from broker_core.pipeline.outcomes import Ended
from broker_core.pipeline.pipeline import Pipeline
from broker_core.pipeline.question_text import QuestionText
from broker_core.pipeline.sight import Sight, open_sight
from broker_core.pipeline.standing_answer import StandingAnswer
from broker_core.pipeline.topic_questions import TopicQuestions
from broker_core.pipeline.watchable import listing_of_now, unfit_for_watches, unwatchable_pattern

__all__ = [
    "AcceptedAnswer",
    "Answer",
    "ChangeNotices",
    "Ended",
    "NextRuns",
    "Pipeline",
    "PipelineOptions",
    "QuestionText",
    "QuestionWarning",
    "Sight",
    "StandingAnswer",
    "TopicQuestions",
    "Trace",
    "explain",
    "listing_of_now",
    "one_line_of_denials",
    "open_sight",
    "pattern_facts",
    "unfit_for_watches",
    "unwatchable_pattern",
]
