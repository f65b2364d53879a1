from __future__ import annotations

import asyncio
import weakref

from broker_core.memory.permit_budget import PermitBudget
from broker_core.servers.kafka.pages.kept_answers import KeptAnswers, WholeAnswer
from tests.support.eventually import eventually


class _Units:
    """What an answer holds, as something that a weak reference can be to."""


async def test_an_answer_is_kept_for_its_age_with_its_permits() -> None:
    budget, kept = PermitBudget(1000), KeptAnswers[WholeAnswer](0.05)
    now = asyncio.get_running_loop().time()
    first, second = [WholeAnswer({}, await budget.acquire(100)) for _ in range(2)]
    kept.keep("a", first, now, kept.mark)
    assert kept.get("a") is first
    kept.keep("a", second, now + 60, kept.mark)
    assert kept.get("a") is second
    assert budget.acquired == 100
    kept.keep("b", WholeAnswer({}, await budget.acquire(1)), now, kept.mark)
    await eventually(lambda: kept.get("b") is None)
    assert kept.get("a") is second
    kept.clear()
    assert kept.get("a") is None
    assert budget.acquired == 0
    second.units = units = _Units()
    gone = weakref.ref(units)
    del second, units
    assert gone() is None  # though its time is not over


async def test_what_was_asked_for_before_a_change_is_not_kept_after_it() -> None:
    budget, kept = PermitBudget(1000), KeptAnswers[WholeAnswer](60)
    now, mark = asyncio.get_running_loop().time(), kept.mark
    kept.clear()
    kept.keep("a", WholeAnswer({}, await budget.acquire(100)), now, mark)
    assert kept.get("a") is None
    assert budget.acquired == 0


async def test_there_are_never_too_many() -> None:
    budget, kept = PermitBudget(1000), KeptAnswers[WholeAnswer](60)
    now = asyncio.get_running_loop().time()
    for number in range(65):
        kept.keep(number, WholeAnswer({}, await budget.acquire(1)), now, kept.mark)
        assert kept.get(0) is not None
    assert kept.get(1) is None  # it was not used for longest
    assert budget.acquired == 64
    kept.clear()
