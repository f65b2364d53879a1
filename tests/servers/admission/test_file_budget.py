from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from broker_core.servers.admission.file_budget import FileBudget


@pytest.mark.parametrize("limit", [10, 20, 64, 80, 100, 256, 1024, 65536, 1_048_576])
@pytest.mark.parametrize("opened", [5, 13, 40])
def test_clients_leave_enough_to_the_others(limit: int, opened: int) -> None:
    budget = FileBudget.of(limit, opened)
    assert min(budget.clients, budget.http, budget.refusals) >= 1
    kept_back = max(limit - opened, 4) - budget.clients
    assert budget.http + budget.refusals <= max(kept_back, 2)
    if limit - opened >= 8:
        assert opened + budget.clients < budget.ceiling < limit
        assert budget.http + budget.refusals <= limit - budget.ceiling
        assert budget.clients >= (limit - opened) // 2


def test_what_is_kept_back_is_bounded() -> None:
    assert FileBudget.of(1024, 24) == FileBudget(1024, clients=872, http=32, refusals=16, ceiling=960)
    assert FileBudget.of(65536, 36).clients == 65_372


def test_that_of_a_process_counts_what_is_open_under_its_limit() -> None:
    program = (
        "import json, os\n"
        "from broker_core.servers.admission.file_budget import FileBudget, raise_file_limit\n"
        "raise_file_limit()\n"
        "before = FileBudget.of_process()\n"
        "held = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]\n"
        "after = FileBudget.of_process()\n"
        "print(json.dumps([before.limit, before.clients, after.clients]))\n"
    )
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    done = subprocess.run(
        ["bash", "-c", 'ulimit -S -n 100; ulimit -H -n 200; exec "$0" -c "$1"', sys.executable, program],
        capture_output=True,
        text=True,
        check=True,
    )
    limit, before, after = json.loads(done.stdout)
    assert limit == 200
    assert before - after == 10
    assert hard == resource.RLIM_INFINITY or hard > 200


def test_connections_to_brokers_are_kept_back() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    share = FileBudget.upstream_share(256)
    assert 8 <= share <= 256
    assert soft == resource.RLIM_INFINITY or share <= max(8, soft // 8)
    assert FileBudget.of_process().clients - FileBudget.of_process(upstream=20).clients in (10, 20)


@pytest.mark.parametrize("limit", [20, 64, 256, 1024, 65536, 1_048_576])
def test_the_api_has_a_share_of_the_clients(limit: int) -> None:
    without, auto = FileBudget.of(limit, 13), FileBudget.of(limit, 13, "auto")
    assert auto.clients + auto.api == without.clients
    assert auto.api == min(1024, max(1, without.clients // 8))
    assert (auto.http, auto.refusals, auto.ceiling) == (without.http, without.refusals, without.ceiling)
    wished = FileBudget.of(limit, 13, 10_000)
    assert wished.api == min(10_000, without.clients // 2)
    assert without.api == 0
