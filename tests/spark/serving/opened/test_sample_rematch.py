"""Matching some names again finds wrong postings."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from broker_core import EncodedNames
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import NameSelector
from broker_core_spark.format.picked_words import Matches
from broker_core_spark.format.segment_reader import SegmentRun
from broker_core_spark.serving.opened.sample_rematch import rematch_sample
from tests.support.generation_builder import opened_runs
from tests.support.segment_writer import SegmentWriter

ODD = NameSelector("t/n/.*[13579](-.*)?")
NAMES = EncodedNames.of("t/n", "persistent", [f"x{i:02}" for i in range(40)] + ["p7-partition-2"])
ROWS = np.flatnonzero([int(name[2]) % 2 == 1 if name[0] == "x" else True for name in NAMES.names.to_pylist()])


def run(selector: NameSelector, picked: Matches) -> SegmentRun:
    writer = SegmentWriter()
    writer.add_run(NAMES, [selector], [(selector, picked)])
    (found,) = opened_runs(writer)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_right_postings_pass(seed: int) -> None:
    rematch_sample(run(ODD, ROWS), [ODD], Random(seed), 10)
    rematch_sample(run(NameSelector(None), (0, len(NAMES))), [NameSelector(None)], Random(seed), 10)
    nothing = NameSelector("nothing")
    rematch_sample(run(nothing, (0, 0)), [nothing], Random(seed), 10)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("selector", "picked", "reason"),
    [
        (ODD, (0, len(NAMES)), "does not match it"),
        (ODD, (0, 0), "is not picked by .* but matches it"),
        (ODD, np.flatnonzero(~np.isin(np.arange(len(NAMES)), ROWS)), "does not match it"),
        (NameSelector(None), (0, 20), "is not picked by None, but matches it"),
        (NameSelector("t/n/x.*", (("k", "v"),)), (0, len(NAMES) - 40), "does not match it"),
        (NameSelector("(?!x)"), (0, 1), "RE2 does not run"),
        (NameSelector("("), (0, 1), "RE2 does not run"),
    ],
)
def test_wrong_postings_are_refused(seed: int, selector: NameSelector, picked: Matches, reason: str) -> None:
    with pytest.raises(InvalidGeneration, match=reason) as caught:
        rematch_sample(run(selector, picked), [selector], Random(seed), 10)
    assert caught.value.file == "postings/x.post"


def test_fewer_by_properties_is_right() -> None:
    selector = NameSelector("t/n/x.*", (("k", "v"),))
    some = np.array([row for row in range(len(NAMES)) if NAMES.names[row].as_py().endswith("3")])
    rematch_sample(run(selector, some), [selector], Random(1), 10)
