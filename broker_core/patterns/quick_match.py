"""Whether a pattern may match one of a few names: for most patterns decided by their ranges alone, in a microsecond."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.patterns.topics_pattern import TopicsPattern

__all__ = ["may_match"]

#: Instructions of a pattern that is compiled in some microseconds.
_QUICK_PROGRAM: Final = 200
_LOW: Final = itemgetter(0)


def may_match(pattern: TopicsPattern, forms: Sequence[bytes]) -> bool:
    """Whether ``pattern`` matches any of ``forms`` (``tenant/namespace/topic``); also ``True`` if that is costly."""
    ranges = pattern.ranges
    if len(ranges) == 1:
        ((low, high),) = ranges
        forms = [form for form in forms if low <= form < high]
    elif ranges:
        forms = [form for form in forms if _is_within(form, ranges)]
    if forms and pattern.required:
        required = [text.encode() for text in pattern.required]
        forms = [form for form in forms if all(text in form for text in required)]
    if not forms:
        return False
    if (
        pattern.exact_range
        or not pattern.supported
        or pattern.match_all
        or pattern.program_size > _QUICK_PROGRAM
    ):
        return True
    return bool(pc.any(pattern.match_column(pa.array(forms, pa.large_string()))).as_py())


def _is_within(form: bytes, ranges: Sequence[tuple[bytes, bytes]]) -> bool:
    number = bisect_right(ranges, form, key=_LOW) - 1
    return number >= 0 and form < ranges[number][1]
