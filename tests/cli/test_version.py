from __future__ import annotations

import pytest

import broker_core
from broker_core.cli.version import print_version


def test_it_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    print_version()
    assert capsys.readouterr().out == f"broker-core {broker_core.__version__}\n"
