"""Runs of bytes that every match has: known ones, and none that a match lacks."""

from __future__ import annotations

import random
import re

import pytest
import re2

from broker_core.patterns.pattern_text import class_run
from tests.support.examples import examples
from tests.support.one_test import in_one_test


def shown(text: str) -> list[str]:
    return ["".join(sorted(map(chr, some))) for some in class_run(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".*[01][23][45].*", ["01", "23", "45"]),
        (".*-[01][23].*", ["-", "01", "23"]),
        (r"[0-2]ab\Q\E{2}.*", ["012", "a", "b", "b"]),
        ("a[0-2]{3}.*", ["a", "012", "012", "012"]),
        ("[ab][cd][ef]x[gh].*", ["ab", "cd", "ef", "x"]),  # the rarest, and the first of these
        (".*[01][23][45]+.*[67][89]-", ["67", "89", "-"]),
        (r".*x\d{2}-.*", ["x", "0123456789", "0123456789", "-"]),
        (".*[01][23]é.*", ["01", "23", "Ã", "©"]),
        ("^[ab]xy$", ["ab", "x", "y"]),
        (".*" * 300 + "[ab]{9}" * 100, ["ab", "ab", "ab", "ab"]),
        ("[ab]{9}" * 8 + "[01]xyz", ["ab", "ab", "ab", "ab"]),  # what is far behind is not looked at
        # Nothing certain, nothing rare, or nothing but a literal.
        ("abc.*def", []),
        (".*[0-9][0-9][0-9][0-9].*", []),
        (".*[01].*[23].*[45].*", []),
        ("[01][23][45]|x", []),
        ("(?i)[ab][cd][ef]x", []),
        ("([01][23][45])?", []),
        ("[^a][^b][^c]x", []),
        ("[01]?[23]*[45]{0,2}[67]{2,}", []),
        (r"[\d]xy", []),
        ("[[:alpha:]]xy", []),
        ("[é]xy", []),
        ("[01][23]{2}+", []),
        (r"\pLxy[0-9]?", []),
        (r"\Q[01][23][45]\E", []),
        ("", []),
    ],
)
def test_known_runs(text: str, expected: list[str]) -> None:
    assert shown(text) == expected


PIECES = [
    "[ab]",
    "[a-c]",
    "a",
    "b",
    "é",
    ".",
    ".*",
    "[ab]{2}",
    "ab\\Q\\E{2}",
    "c?",
    "(a|b)",
    "[bc]+",
    r"\.",
    "^",
    "$",
    "x*",
    "[^a]",
]


@in_one_test("seed", range(examples(30)))
def test_every_match_has_the_run(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(30):
        text = "".join(chance.choices(PIECES, k=chance.randrange(1, 7))) + "|a" * (chance.random() < 0.1)
        run = class_run(text)
        if not run:
            continue
        wanted = re.compile(b"".join(b"[" + re.escape(bytes(sorted(some))) + b"]" for some in run))
        for _ in range(200):
            name = "".join(chance.choices("aabbcé.x", k=chance.randrange(1, 9)))
            if re2.fullmatch(text, name) is not None:
                assert wanted.search(name.encode()), (text, name)
