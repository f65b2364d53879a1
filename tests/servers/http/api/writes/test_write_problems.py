from __future__ import annotations

import pytest

from broker_core.catalog import (
    CatalogBusy,
    CatalogError,
    CatalogFull,
    CatalogReadOnly,
    CatalogUnusable,
    ImportRefused,
    PartitionCountRefused,
    PartitionedRefused,
    PartitionRefused,
    PreconditionFailed,
    TopicExists,
    TopicInvalid,
    TopicMissing,
)
from broker_core.catalog.errors import PairRefused
from broker_core.mass_deletion_guard import Deletions, MassDeletion
from broker_core.servers.http.api.problem_details import RequestRefused
from broker_core.servers.http.api.writes.write_problems import write_problem, write_problems

PATH = "/var/lib/topics.sqlite"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TopicInvalid("said"), 400),
        (TopicMissing("said"), 404),
        (TopicExists("said"), 409),
        (PairRefused("said"), 409),
        (PartitionRefused("said"), 409),
        (PartitionCountRefused("said", 1), 409),
        (PartitionedRefused("said"), 409),
        (PreconditionFailed("said"), 412),
    ],
)
def test_what_is_due_to_the_request_is_told_as_it_is(error: CatalogError, status: int) -> None:
    problem = write_problem(error).problem
    assert (problem.status, problem.detail) == (status, "said")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (CatalogBusy(PATH), 503, "try again later"),
        (CatalogReadOnly(PATH), 403, "can only be read"),
        (CatalogFull(PATH), 507, "disk of the catalogue is full"),
        (CatalogUnusable(PATH), 500, "cannot be written"),
        (CatalogError(PATH), 500, "cannot be written"),
    ],
)
def test_what_is_due_to_the_server_names_no_file(error: CatalogError, status: int, said: str) -> None:
    problem = write_problem(error).problem
    assert problem.status == status
    assert said in problem.detail
    assert PATH not in problem.detail
    assert dict(problem.headers) == ({"Retry-After": "1"} if status == 503 else {})


def test_numbers_are_members() -> None:
    line = write_problem(ImportRefused(7, "it is empty")).problem
    assert (line.status, line.detail, line.more) == (400, "line 7 of the body: it is empty", {"line": 7})
    with pytest.raises(MassDeletion) as refused:
        Deletions(1).check({"a/b": (10, 3)}, "--dry-run shows them")
    problem = write_problem(refused.value).problem
    assert (problem.status, problem.more) == (409, {"there": 10, "deletions": 3})
    assert problem.detail.endswith("nothing was written; max_deletions=3 allows it")
    assert "--" not in problem.detail


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), write_problems():
        raise KeyError
    with pytest.raises(RequestRefused), write_problems():
        raise TopicMissing("x")
