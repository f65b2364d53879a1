"""The log of a process: writing a line never waits for its reader, and a client's text cannot break a line.

A logger hands a rendered line to a bounded queue; one thread writes it. A repeated line is folded into a count for a
while, a line is dropped if the queue is full, and both are counted.
"""

from __future__ import annotations

from broker_core.logs.access_log import AccessLog, json_fields
from broker_core.logs.captured_prints import CapturedPrints
from broker_core.logs.dropped_line_count import DroppedLineCount, dropped_lines
from broker_core.logs.each_line import EACH, EachLine, info_each
from broker_core.logs.line_queue import LineQueue
from broker_core.logs.log_file import LogFileError, open_log_file
from broker_core.logs.rendering import LogRenderer
from broker_core.logs.repeated_lines import RepeatedLines, reason_of

__all__ = [
    "EACH",
    "AccessLog",
    "CapturedPrints",
    "DroppedLineCount",
    "EachLine",
    "LineQueue",
    "LogFileError",
    "LogRenderer",
    "RepeatedLines",
    "dropped_lines",
    "info_each",
    "json_fields",
    "open_log_file",
    "reason_of",
]
