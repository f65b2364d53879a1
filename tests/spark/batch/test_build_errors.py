"""Errors of the batch are errors of the broker, so the command line shows one line."""

from __future__ import annotations

import pickle

import pytest

from broker_core.errors import BrokerCoreError
from broker_core_spark.batch.build_errors import BatchError, InvalidCatalogue, InvalidPatterns, TaskFailed
from tests.support.narrowed import of_type


@pytest.mark.parametrize("kind", [BatchError, InvalidCatalogue, InvalidPatterns, TaskFailed])
def test_they_are_shown_as_one_line_and_travel_between_processes(kind: type[BatchError]) -> None:
    error = of_type(pickle.loads(pickle.dumps(kind("what is wrong"))), BrokerCoreError)
    assert (type(error), str(error)) == (kind, "what is wrong")
