from __future__ import annotations

import subprocess
import sys

import pytest

import broker_core


def test_all_names_are_there() -> None:
    for name in broker_core.__all__:
        assert getattr(broker_core, name), name
        assert name in dir(broker_core)
    assert broker_core.Mode.ALL.name == "ALL"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Topics'"):
        _ = broker_core.Topics


def test_what_is_heavy_is_imported_when_it_is_used() -> None:
    """The command line starts with this package, and most of its commands need no Arrow."""
    program = (
        "import sys, broker_core; print(sorted({'pyarrow', 'numpy', 're2', 'pydantic'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
