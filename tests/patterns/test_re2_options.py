"""The limits of patterns for RE2."""

from __future__ import annotations

import pytest
import re2

from broker_core.patterns import compile_pattern


@pytest.mark.parametrize(
    "raw", [r"(\pL|\pN){300}", r"\pL{60}", r"(?:\pL*\pN*){60}.*x", r"((a{100}){100}){100}"]
)
def test_a_program_that_is_too_large_is_unsupported(raw: str) -> None:
    pattern = compile_pattern(raw)
    assert not pattern.supported
    assert pattern.plan == "unsupported"


@pytest.mark.parametrize(
    "raw", ["(.*){1000}", ".{1000}", "[^x]{1000}", "(.?){1000}", r"\w{1000}", "(?i)" + "k" * 1000]
)
def test_large_programs_that_are_still_quick_are_run(raw: str) -> None:
    pattern = compile_pattern(raw)
    assert pattern.supported
    assert pattern.program_size <= 12_000


@pytest.mark.parametrize(
    "piece", ["a{100}", "(?:a?){100}", ".{100}", "[^a]{100}", r"\p{Greek}{180}", r"(?i)\W{105}"]
)
def test_the_bound_on_memory_refuses_no_program_of_the_size_that_is_run(piece: str) -> None:
    options = re2.Options()
    options.log_errors = False
    size = re2.compile(piece, options).programsize
    pattern = compile_pattern(piece * (11_900 // size), max_length=100_000)
    assert pattern.supported
    assert pattern.program_size > 10_000
