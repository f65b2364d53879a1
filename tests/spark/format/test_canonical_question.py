"""Questions with equal answers are one question, and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidPattern
from broker_core.names import Mode
from broker_core_spark.format.canonical_question import (
    CanonicalQuestion,
    NameSelector,
    canonical_json,
    line_key,
    required_selectors,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def test_the_scheme_and_no_pattern_at_all_make_no_difference() -> None:
    plain = CanonicalQuestion.of("t/n", Mode.ALL, "t/n/a.*")
    assert CanonicalQuestion.of("t/n", Mode.ALL, "persistent://t/n/a.*") == plain
    assert CanonicalQuestion.of("t/n", Mode.ALL, ".*") == CanonicalQuestion.of("t/n", Mode.ALL, None)
    assert CanonicalQuestion.of("t/n", Mode.ALL, "non-persistent://.*") == CanonicalQuestion.of(
        "t/n", Mode.ALL, None
    )
    assert CanonicalQuestion.of("t/n", Mode.PERSISTENT, "t/n/a.*") != plain
    assert CanonicalQuestion.of("t/n", Mode.ALL, "t/n/a.*", {"k": "v"}) != plain


@pytest.mark.parametrize("raw", ["http://t/n/a", "persistent:persistent:////a"])
def test_a_pattern_of_another_scheme_is_no_question(raw: str) -> None:
    with pytest.raises(InvalidPattern):
        CanonicalQuestion.of("t/n", Mode.ALL, raw)


@given(
    st.sampled_from(Mode),
    st.none() | TEXTS.filter(lambda text: "://" not in text),
    st.dictionaries(TEXTS, TEXTS, max_size=3),
)
def test_a_line_is_the_question(mode: Mode, text: str | None, properties: dict[str, str]) -> None:
    question = CanonicalQuestion.of_text("t/n", mode, text, properties)
    again = CanonicalQuestion.parse(question.line)
    assert again == question
    assert again.key == question.key == line_key(question.line)
    assert b"\n" not in question.line
    record = {"namespace": "t/n", "mode": mode.name, "pattern": None if text == ".*" else text}
    assert question.line == canonical_json(record | {"properties": properties})


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"1",
        b"{",
        b'{"mode":"ALL"}',
        b'{"mode":"ALL","namespace":"t/n","pattern":null,"properties":{} }',
        b'{"mode":"NONE","namespace":"t/n","pattern":null,"properties":{}}',
        b'{"mode":"ALL","namespace":1,"pattern":null,"properties":{}}',
        b'{"mode":["ALL"],"namespace":"t/n","pattern":null,"properties":{}}',
        b'{"mode":"ALL","namespace":"t/n","pattern":1,"properties":{}}',
        b'{"mode":"ALL","namespace":"t/n","pattern":".*","properties":{}}',
        b'{"mode":"ALL","namespace":"t/n","pattern":"persistent://x","properties":{}}',
        b'{"mode":"ALL","namespace":"t/n","pattern":null,"properties":{"a":1}}',
        b'{"mode":"ALL","namespace":"t/n","pattern":null,"properties":[]}',
        b'{"mode":"ALL","namespace":"t/n","pattern":"\\u0061","properties":{}}',
    ],
)
def test_a_line_that_is_not_canonical_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        CanonicalQuestion.parse(line)


def test_the_selectors_of_a_run_are_those_of_all_modes_that_list_its_domain() -> None:
    questions = [
        CanonicalQuestion.of("t/n", Mode.PERSISTENT, "a"),
        CanonicalQuestion.of("t/n", Mode.ALL, "a"),
        CanonicalQuestion.of("t/n", Mode.ALL, "b"),
        CanonicalQuestion.of("t/m", Mode.NON_PERSISTENT, None),
    ]
    required = required_selectors(questions)
    assert set(required) == {("t/n", "persistent"), ("t/n", "non-persistent"), ("t/m", "non-persistent")}
    both = tuple(sorted((NameSelector("a"), NameSelector("b")), key=lambda selector: selector.key))
    assert required["t/n", "persistent"] == required["t/n", "non-persistent"] == both
    assert required["t/m", "non-persistent"] == (NameSelector(None),)


def test_canonical_json_has_one_form() -> None:
    assert canonical_json({"b": "é\n", "a": [1, None]}) == '{"a":[1,null],"b":"é\\n"}'.encode()
