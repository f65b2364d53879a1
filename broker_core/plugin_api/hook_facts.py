"""Facts of a hook that the broker has to know: declared with the hook's specification, and read by everything else."""

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

    ``outcomes`` are the ways in which a call may end besides :data:`ERROR`, as metrics and ``explain`` show them; they
    are empty for hooks that a running broker does not call for requests. ``shapes_answers``: a listing of a namespace
    for which a plugin has this hook is never answered without calling it. ``fails_alone``: what the plugin raises
    counts for this question only, and opens no breaker. ``secret``: its arguments are secrets, so only the kind of an
    error is shown, never its text. ``plain``: it is called in a place without an event loop, so it cannot be ``async``.
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
    """The facts of all hooks of a class, by the hooks' names, which begin with ``prefix``."""
    return MappingProxyType(
        {
            name: getattr(specification, _ATTRIBUTE, HookFacts())
            for name, specification in vars(specifications).items()
            if name.startswith(prefix)
        }
    )
