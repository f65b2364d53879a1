"""Comparing the database with a cluster or the catalogue and, if asked for, correcting it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from broker_core.plugin_cli import Deletions
from broker_core_postgres.fill.sync.differences import Difference
from broker_core_postgres.fill.sync.mirror import Mirror, MirrorReport

__all__ = ["VerifyReport", "verify"]


@dataclass(slots=True)
class VerifyReport:
    """The number of topics by kind of difference. ``fixed`` is the report of the correction, ``None`` without one."""

    missing: int = 0
    extra: int = 0
    different: int = 0
    report: MirrorReport = field(default_factory=MirrorReport)
    fixed: MirrorReport | None = None

    @property
    def differences(self) -> int:
        """The number of topics that differ."""
        return self.missing + self.extra + self.different

    @property
    def equal(self) -> bool:
        """Whether the database equals the source now."""
        return not self.differences or self.fixed is not None


async def verify(
    mirror: Mirror, found: Callable[[Difference], None], *, fix: Deletions | None = None
) -> VerifyReport:
    """Call ``found`` with each topic that differs. With ``fix``, write the differences then.

    Raises :exc:`~broker_core.plugin_cli.MassDeletion` if that would delete more than is allowed.
    """
    verdict = VerifyReport(report=mirror.report)
    async for difference in mirror.differences():
        setattr(verdict, difference.kind, getattr(verdict, difference.kind) + 1)
        found(difference)
    if fix is not None:
        written = await mirror.write(fix)
        verdict.fixed = written if verdict.differences else None
    return verdict
