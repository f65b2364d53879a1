"""Compiled files of a clone in which no test has been run, made by several processes before one collects the tests."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
    try_makedirs,
)
from hypothesis.internal.charmap import intervals_from_codec
from hypothesis.internal.constants_ast import constants_from_module

from tests.support.distributions import DISTRIBUTIONS, ROOT

__all__ = ["make_caches"]

_FORK: Final = get_context("fork")


def make_caches(config: pytest.Config, processes: int) -> None:
    """Make what is missing, in so many processes."""
    if sys.dont_write_bytecode:
        return
    made = [
        _FORK.Process(target=_make_share, args=(config, slice(number, None, processes)))
        for number in range(processes)
    ]
    for process in made:
        process.start()
    for process in made:
        process.join()
        assert process.exitcode == 0


def _make_share(config: pytest.Config, share: slice) -> None:
    if share.start == 0:
        # Of what `text()` draws; more than a second, and each process that comes first would take it.
        intervals_from_codec("utf-8")
    tests = sorted((ROOT / "tests").rglob("*.py"))
    for path in [path for path in tests if path.name.startswith("test_")][share]:
        pyc = get_cache_dir(path) / (path.stem + PYC_TAIL)
        if not pyc.exists() and try_makedirs(pyc.parent):
            source_hash, code = _rewrite_test(path, config)
            _write_pyc(config.stash[assertstate_key], code, source_hash, pyc)
    sources = sorted(path for each in DISTRIBUTIONS for path in each.sources.rglob("*.py"))
    for path in [*(path for path in tests if not path.name.startswith("test_")), *sources][share]:
        if not Path(importlib.util.cache_from_source(path)).exists():
            SourceFileLoader(path.stem, str(path)).get_code(path.stem)
            module = ModuleType(path.stem)
            module.__file__ = str(path)
            constants_from_module(module)  # Hypothesis makes examples of what modules compare with
