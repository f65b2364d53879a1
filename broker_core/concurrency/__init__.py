"""Sharing one event loop and one interpreter fairly: turns, time on the loop, work in steps or threads, its lock."""

from __future__ import annotations

from broker_core.concurrency.cpu_threads import Steps, finished, in_thread, in_turns, pass_lock_on
from broker_core.concurrency.fair_places import FairPlaces, TurnQueue
from broker_core.concurrency.loop_or_thread import (
    EACH_ACL,
    EACH_BYTE,
    EACH_CHANGE,
    EACH_COMPARED_BYTE,
    EACH_EVENT,
    EACH_NAME,
    EACH_PAGE_BYTE,
    EACH_ROW,
    EACH_TOPIC_OF_TABLE,
    ON_LOOP,
)
from broker_core.concurrency.loop_turns import has_time, loop_turn, running_loop
from broker_core.concurrency.pauses import backoff, ended_within
from broker_core.concurrency.shared_tasks import TasksByKey

__all__ = [
    "EACH_ACL",
    "EACH_BYTE",
    "EACH_CHANGE",
    "EACH_COMPARED_BYTE",
    "EACH_EVENT",
    "EACH_NAME",
    "EACH_PAGE_BYTE",
    "EACH_ROW",
    "EACH_TOPIC_OF_TABLE",
    "ON_LOOP",
    "FairPlaces",
    "Steps",
    "TasksByKey",
    "TurnQueue",
    "backoff",
    "ended_within",
    "finished",
    "has_time",
    "in_thread",
    "in_turns",
    "loop_turn",
    "pass_lock_on",
    "running_loop",
]
