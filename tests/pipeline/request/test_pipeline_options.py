"""Bounds of the pipeline."""

from __future__ import annotations

from dataclasses import replace

from broker_core.patterns import compile_pattern
from broker_core.pipeline import PipelineOptions
from broker_core.settings import PatternsSettings
from tests.support.pipelines import request


def test_a_pattern_is_long_that_is_never_compiled() -> None:
    options = PipelineOptions(PatternsSettings(max_length=8))
    ask = request("t/n/.*")
    assert ask.pattern is not None
    assert not options.is_long(request())
    assert not options.is_long(ask)
    assert not options.is_long(replace(ask, pattern=compile_pattern("x" * 8)))
    assert options.is_long(replace(ask, pattern=compile_pattern("x" * 9)))
