"""Errors of generations name the file and the reason, after a pickle too."""

from __future__ import annotations

import pickle

from broker_core.errors import BrokerCoreError
from broker_core_spark.errors import InvalidGeneration, NoSuchGeneration, StoreFailed


def test_a_refused_file_is_named_with_the_reason() -> None:
    error = InvalidGeneration("segments/x.seg", "it is truncated")
    assert str(error) == "segments/x.seg: it is truncated"
    assert (error.file, error.reason) == ("segments/x.seg", "it is truncated")
    assert all(
        issubclass(kind, BrokerCoreError) for kind in (InvalidGeneration, NoSuchGeneration, StoreFailed)
    )


def test_an_error_survives_the_way_out_of_a_worker() -> None:
    again = pickle.loads(pickle.dumps(InvalidGeneration("f", "r")))
    assert (again.file, again.reason, str(again)) == ("f", "r", "f: r")
