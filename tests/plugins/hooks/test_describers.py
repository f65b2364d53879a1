from __future__ import annotations

import pyarrow as pa
import pytest

from broker_core import Details
from broker_core.plugins.hooks.describers import checked_details


def test_details_or_nothing() -> None:
    details = Details.of(["persistent://t/n/a"])
    assert checked_details(details, None) == (details, "success")
    assert checked_details(None, None) == (None, "pass_through")


@pytest.mark.parametrize("answer", [[], True, {"topic": []}, pa.table({"topic": []}), Details])
def test_what_is_no_answer(answer: object) -> None:
    with pytest.raises(TypeError, match=r"not broker_core.Details or None"):
        checked_details(answer, None)


def test_a_batch_is_told_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"write Details\(batch\)"):
        checked_details(Details.of(["persistent://t/n/a"]).batch, None)


def test_a_class_derived_from_details_may_say_anything() -> None:
    class Mine(Details):
        pass

    with pytest.raises(TypeError, match="returned a Mine"):
        checked_details(Mine(Details.of([]).batch), None)
