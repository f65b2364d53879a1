"""Compiled files of a clone in which no test has been run, made by the processes of a run together.

Else each of four processes compiles all of them, which is half of the time that it takes to collect the tests.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
    try_makedirs,
)
from hypothesis.internal.constants_ast import constants_from_module

from tests.support.distributions import DISTRIBUTIONS, ROOT

__all__ = ["make_share"]


def make_share(config: pytest.Config) -> None:
    """Make the part of one process of ``pytest -n``, before it collects the tests."""
    worker: dict[str, str | int] | None = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    share = slice(int(str(worker["workerid"]).removeprefix("gw")), None, int(worker["workercount"]))
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
