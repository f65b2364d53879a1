"""Finding the change log of a generation: the one with the id of its catalogue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from broker_core.change_log import ChangeLog
from broker_core.errors import ListingFailed
from broker_core_spark.format import Manifest
from broker_core_spark.serving.pass_to_next_lister import UNDECLARED_STATIC, PassToNextLister

__all__ = ["ChangeLogFinder"]

#: Seconds until logs are asked again for their catalogue's id.
_ASK_AGAIN: Final = 1.0


class ChangeLogFinder:
    """Finds the change log of a catalogue among ``logs``, the broker's.

    The search goes on until the log is found: plugins start one after the other, and a log may come later. ``static``
    is the operator's declaration, in force at a question, that the generation may be served as it was built.
    """

    def __init__(self, logs: Callable[[], Sequence[ChangeLog]], *, timeout: float) -> None:
        self._logs = logs
        self._timeout = timeout
        self._found: ChangeLog | None = None
        self._why_none = ("", "")
        self._not_before = float("-inf")

    def follows(self, manifest: Manifest, *, static: bool) -> bool:
        """Whether a change log keeps a generation right, rather than the operator's declaration."""
        return not manifest.static and bool(self._logs() or not static)

    async def find(self, manifest: Manifest, *, static: bool) -> ChangeLog | None:
        """The change log of a generation, or ``None`` for a catalogue that is declared static.

        Raises :exc:`PassToNextLister` if the generation must not be served as it is.
        """
        if manifest.static:
            if not static:
                raise PassToNextLister("not_declared_static", UNDECLARED_STATIC)
            return None
        if self._found is not None:
            return self._found
        logs = self._logs()
        if not logs:
            if static:
                return None
            raise PassToNextLister("no_change_log", "no lister has a change log")
        clock = asyncio.get_running_loop().time
        if clock() >= self._not_before:
            found, self._why_none = await self._look(logs, manifest.catalogue_id)
            self._found = self._found or found  # another question may have found it meanwhile
            self._not_before = clock() + _ASK_AGAIN
        if self._found is None:
            raise PassToNextLister(*self._why_none)
        return self._found

    async def _look(self, logs: Sequence[ChangeLog], wanted: str) -> tuple[ChangeLog | None, tuple[str, str]]:
        """The log, or why there is none."""
        others, unreachable = [], []
        for log in logs:
            try:
                async with asyncio.timeout(self._timeout):
                    found = await log.catalog_id()
            except (ListingFailed, TimeoutError) as error:
                unreachable.append(f"{log.name}: {str(error) or 'no answer'}")
            else:
                if found == wanted:
                    return log, ("", "")
                others.append(f"{log.name} is {found}")
        if unreachable:
            return None, ("unreachable", "; ".join(unreachable))
        return None, ("other_catalogue", f"the generation is of catalogue {wanted}; {'; '.join(others)}")
