from __future__ import annotations

import asyncpg
import pytest

from broker_core_postgres.commands.writing import run_to_end, told
from broker_core_postgres.filling_failed import FillingFailed


def test_a_refusal_is_told_in_words_for_writers() -> None:
    error = asyncpg.InsufficientPrivilegeError("permission denied for table topics")
    assert "broker_core_feeder" in told(error)
    assert "permission denied for table topics" in told(error)


def test_an_error_of_a_group_is_raised_as_it_is() -> None:
    async def failing() -> None:
        raise ExceptionGroup("several", [FillingFailed("why")])

    with pytest.raises(FillingFailed, match="why"):
        run_to_end(failing)
