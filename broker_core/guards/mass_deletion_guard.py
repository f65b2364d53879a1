"""Limits on what a command deletes without explicit permission, in case the cluster or file is wrong or incomplete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from broker_core.counted import counted
from broker_core.errors import BrokerCoreError

__all__ = ["Deletions", "Loss", "MassDeletion", "Refusal"]

_ALWAYS: Final = 100  # listed names
_SHARE: Final = 0.1
_SMALL: Final = 10  # a namespace of so few names may lose all of them


class MassDeletion(BrokerCoreError):
    """Error: more would be deleted than is allowed, as ``refusal`` says; nothing was written."""

    def __init__(self, message: str, refusal: Refusal) -> None:
        super().__init__(message)
        self.refusal = refusal


class Loss(NamedTuple):
    """The loss of one namespace, in listed names (each partition is one): how many are ``there``, how many would go."""

    there: int
    removed: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of deletions: ``why``, and ``allows``, the options of a command that allow them.

    ``loss`` is the sum over all namespaces.
    """

    why: str
    allows: str
    loss: Loss

    def error(self, hint: str = "") -> MassDeletion:
        """The error that nothing was written. ``hint`` says how to see these names, such as ``"--dry-run shows
        them"``.
        """
        return MassDeletion(
            f"{self.why}: nothing was written; {f'{hint}, ' if hint else ''}{self.allows} allows it", self
        )

    @property
    def ahead(self) -> str:
        """The message of a dry run about the real run."""
        return f"without --dry-run this is refused: {self.why}; {self.allows} allows it"


@dataclass(frozen=True, slots=True)
class Deletions:
    """The allowed deletions. ``most``: listed names in one run; ``None``: 100, or a tenth of all if that is more,
    and no namespace of more than ten names loses all of them. ``mass``: any number.
    """

    most: int | None = None
    mass: bool = False

    def check(self, losses: Mapping[str, tuple[int, int]], hint: str) -> None:
        """Raise :exc:`MassDeletion` if the losses, by namespace, are more than is allowed.

        A loss is (how many listed names are there, how many would go).

        Call it before anything is written, or in a transaction that is undone. ``hint`` is as for
        :meth:`Refusal.error`.
        """
        refusal = self.refusal(losses)
        if refusal is not None:
            raise refusal.error(hint)

    def refusal(self, losses: Mapping[str, tuple[int, int]]) -> Refusal | None:
        """The refusal of losses by namespace; ``None`` if they are allowed."""
        if self.mass:
            return None
        of = {namespace: Loss(*loss) for namespace, loss in losses.items()}
        removed = sum(loss.removed for loss in of.values())
        there = sum(loss.there for loss in of.values())
        most = max(_ALWAYS, int(there * _SHARE)) if self.most is None else self.most
        allows = f"--max-deletions {removed} or --allow-mass-deletions"
        if removed > most:
            largest = max(of, key=lambda namespace: of[namespace].removed)
            return Refusal(
                f"{removed} of {there} listed names would be deleted, more than {most} "
                f"(of {largest} alone {of[largest].removed} of {of[largest].there})",
                allows,
                Loss(there, removed),
            )
        if self.most is None:
            emptied = [namespace for namespace, loss in of.items() if loss.removed == loss.there > _SMALL]
            if emptied:
                more = f" and {counted(len(emptied) - 1, 'other namespace')}" if len(emptied) > 1 else ""
                return Refusal(
                    f"{emptied[0]}{more} would lose all of {of[emptied[0]].there} listed names",
                    allows,
                    Loss(there, removed),
                )
        return None
