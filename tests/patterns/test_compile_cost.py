"""The estimate of compile cost from the text is never below RE2's real cost."""

from __future__ import annotations

import random

import pytest
import re2

from broker_core.patterns.pattern_compiler import estimated_instructions, unicode_classes

PARTS = [
    *(
        "a",
        "a?",
        "[ab]",
        "a*",
        ".",
        "(?:a?){20}",
        "(?:ab?){10}",
        "[a-c]{30}",
        "(?i)",
        "é",
        "K",
        r"\pL",
        r"[^\pL]",
    ),
    *(
        r"\p{Greek}",
        r"\W",
        "[^a]",
        "(x|y|é)",
        "(?:a{10}){10}",
        "{3}",
        "{2,5}",
        "+",
        "(",
        ")",
        "|",
        r"\b",
        "^",
        "$",
    ),
    *(
        r"\d",
        "[[:alpha:]]",
        "[à-ÿ]",
        r"\Q\E",
        r"\Qab\E",
        "(?i:k)",
        r"[k-\x{212A}]",
        r"\x{1F600}",
        ".*",
        r"[aà一\pN]",
    ),
]


def test_it_is_a_bound() -> None:
    chance = random.Random(9)
    options = re2.Options()
    options.log_errors = False
    compiled = 0
    while compiled < 500:
        text = "".join(chance.choices(PARTS, k=chance.randrange(1, 14)))
        try:
            size = re2.compile(text, options).programsize
        except re2.error:
            continue
        compiled += 1
        assert size <= estimated_instructions(text) + 10, text
    re2.purge()


@pytest.mark.parametrize(
    "text",
    [
        "public/default/orders-[a-z]+-[0-9]+",
        "public/default/(eu|us|ap)-.*-[0-9]{4}-[0-9]{2}",
        "public/default/.*-[a-f0-9]{8}",
        "(?i)public/default/.*orders.*",
    ],
)
def test_ordinary_patterns_are_cheap(text: str) -> None:
    assert estimated_instructions(text) < 300


@pytest.mark.parametrize("text", [r"(\pL|\pN){100}", "((a{10}){10}){10}", "(.{100}){9}", "a{500}{9}"])
def test_repetitions_multiply(text: str) -> None:
    assert estimated_instructions(text) > 900


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (r"\pL", 1),
        (r"\PL\p{Greek}\p{^Lu}", 3),
        (r"[\pL\pN]+[^\PZ]", 3),
        (r"\\pL[\\pL]", 0),
        (r"\Q\pL\pN\E", 0),
        (r"\d\w\S.", 0),
    ],
)
def test_unicode_classes_are_counted_wherever_they_stand(text: str, count: int) -> None:
    assert unicode_classes(text) == count
