"""Whether the database is what a cluster or the catalogue says; and making it so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from broker_core.plugin_cli import Deletions
from broker_core_postgres.fill.sync.differences import Difference
from broker_core_postgres.fill.sync.mirror import Mirror, MirrorReport

__all__ = ["VerifyReport", "verify"]


@dataclass(slots=True)
class VerifyReport:
    """Topics by the kind of their difference. ``fixed`` is what was written, ``None`` where nothing was to be."""

    missing: int = 0
    extra: int = 0
    different: int = 0
    report: MirrorReport = field(default_factory=MirrorReport)
    fixed: MirrorReport | None = None

    @property
    def differences(self) -> int:
        """Topics that differed."""
        return self.missing + self.extra + self.different

    @property
    def equal(self) -> bool:
        """Whether the database is now what was read."""
        return not self.differences or self.fixed is not None


async def verify(
    mirror: Mirror, found: Callable[[Difference], None], *, fix: Deletions | None = None
) -> VerifyReport:
    """Call ``found`` with each topic that differs; then, with ``fix``, write what differs.

    Raises :exc:`~broker_core.plugin_cli.MassDeletion` where fixing would delete more than is allowed.
    """
    verdict = VerifyReport(report=mirror.report)
    async for difference in mirror.differences():
        setattr(verdict, difference.kind, getattr(verdict, difference.kind) + 1)
        found(difference)
    if fix is not None:
        written = await mirror.write(fix)
        verdict.fixed = written if verdict.differences else None
    return verdict
