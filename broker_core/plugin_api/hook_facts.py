"""What the broker has to know of a hook: declared with the hook's specification, and read by everything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar

__all__ = ["ERROR", "HookFacts", "facts", "facts_of"]

F = TypeVar("F", bound=Callable[..., Any])

#: The outcome of a call that failed; every hook may have it.
ERROR: Final = "error"

_ATTRIBUTE: Final = "broker_core_facts"


@dataclass(frozen=True, slots=True)
class HookFacts:
    """The facts of one hook.

    ``outcomes`` are what a call may come to besides :data:`ERROR`, as metrics and ``explain`` show it: they are those
    of a hook that a running broker asks again and again, and empty for any other.
    ``shapes_answers``: a listing of a namespace that a plugin has this hook for is never answered without asking.
    ``fails_alone``: what the plugin raises counts for this question only, and opens no breaker.
    ``secret``: its arguments are secrets, so of what the plugin raises only the kind is shown, never the text.
    ``plain``: it is called where no event loop runs, so it cannot be ``async``.
    """

    outcomes: tuple[str, ...] = ()
    shapes_answers: bool = False
    fails_alone: bool = False
    plain: bool = False
    secret: bool = False


def facts(
    *outcomes: str,
    shapes_answers: bool = False,
    fails_alone: bool = False,
    plain: bool = False,
    secret: bool = False,
) -> Callable[[F], F]:
    """Declare the facts of a hook; a hook without any is called at the start, at a reload or at the end."""

    def declare(specification: F) -> F:
        setattr(specification, _ATTRIBUTE, HookFacts(outcomes, shapes_answers, fails_alone, plain, secret))
        return specification

    return declare


def facts_of(specifications: type, prefix: str) -> Mapping[str, HookFacts]:
    """The facts of all hooks of a class, by their names, which begin with ``prefix``."""
    return MappingProxyType(
        {
            name: getattr(specification, _ATTRIBUTE, HookFacts())
            for name, specification in vars(specifications).items()
            if name.startswith(prefix)
        }
    )
