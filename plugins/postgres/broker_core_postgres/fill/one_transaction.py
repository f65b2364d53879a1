"""One transaction for all that a command writes, which a dry run rolls back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

__all__ = ["one_transaction"]


@asynccontextmanager
async def one_transaction(connection: Any, *, dry_run: bool) -> AsyncIterator[None]:
    """A transaction for the block; after an error, and after a dry run, the database is unchanged."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    except BaseException:
        with suppress(
            Exception
        ):  # the connection is gone, and the transaction with it: the first error counts
            await transaction.rollback()
        raise
    if dry_run:
        await transaction.rollback()
    else:
        await transaction.commit()
