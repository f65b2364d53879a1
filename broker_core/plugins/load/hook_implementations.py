"""A plugin's functions for the hooks, checked before any of them is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pluggy import HookImpl
from pydantic import BaseModel

from broker_core.plugin_api import EVERYTHING, HOOK_FACTS, checked_words
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.load.installed_plugins import did_you_mean
from broker_core.plugins.raised_exceptions import in_words, shown

__all__ = ["Implementation", "call_plain", "checked_implementation", "dependencies", "settings_model"]


_NO_VALUES: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Implementation:
    """One plugin's function for one hook. ``arguments`` are the hook's arguments that it takes."""

    hook: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    is_async: bool
    tryfirst: bool
    trylast: bool


def checked_implementation(
    name: str, origin: str | None, hook: str, impl: HookImpl, known: Sequence[str]
) -> Implementation:
    """The implementation with the arguments that it names, as with pluggy, and also arguments with a default (which not
    every version of pluggy would pass). Raises :exc:`PluginLoadError` for any other argument: it would always keep its
    default, or be empty, though its author meant one of the hook's."""

    def refuse(problem: str) -> PluginLoadError:
        return PluginLoadError(name, origin, f"has an unusable hook: {hook} {problem}")

    function = impl.function
    if impl.wrapper or impl.hookwrapper:
        raise refuse("is a hookwrapper: hooks are asked one after the other, there is nothing to wrap")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise refuse("is a generator: a hook returns its answer")
    # Not the function that a decorator wraps: only the outermost one decides whether a call gives a coroutine at once.
    is_async = inspect.iscoroutinefunction(function)
    if is_async and HOOK_FACTS[hook].plain:
        raise refuse("is async, but it is called before the event loop runs: make it a plain function")
    parameters = inspect.signature(function).parameters
    first = _first_of_method(function)
    if first in known:
        raise refuse(f"is a method whose first argument is {first!r}: it lacks self")
    for parameter in parameters.values():
        problem = _wrong(parameter, known)
        if problem is not None:
            raise refuse(problem)
    return Implementation(hook, function, tuple(parameters), is_async, impl.tryfirst, impl.trylast)


def _wrong(parameter: inspect.Parameter, known: Sequence[str]) -> str | None:
    """The fault of one argument of a hook's implementation, if it has one."""
    name = parameter.name
    has = f"the hook has {', '.join(known)}" if known else "the hook has none"
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        return (
            f"takes {stars}{name}, which stays empty, since a hook gets the arguments that it names: {has} "
            "(of a decorator, let functools.wraps keep the names)"
        )
    if name not in known:
        return f"takes an argument {name!r}, which this hook does not have: {has}{did_you_mean(name, known)}"
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return f"takes {name!r} by position only: hooks get their arguments by name, so leave the / out"
    return None


def _first_of_method(function: Callable[..., Any]) -> str | None:
    """The name of a method's argument for its instance."""
    if not inspect.ismethod(function) or inspect.isclass(function.__self__):
        return None
    return next(iter(inspect.signature(function.__func__).parameters), None)


def call_plain(
    name: str,
    origin: str | None,
    implementations: Mapping[str, Implementation],
    hook: str,
    values: Mapping[str, Any] = _NO_VALUES,
) -> Any:
    """Call a hook that runs before any event loop does; ``None`` if it is not implemented.

    Raises :exc:`PluginLoadError` naming the plugin for whatever it raises.
    """
    implementation = implementations.get(hook)
    if implementation is None:
        return None
    try:
        return implementation.function(**{key: values[key] for key in implementation.arguments})
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise PluginLoadError(name, origin, f"failed in {implementation.hook}: {in_words(error)}") from error


def settings_model(
    name: str, origin: str | None, implementations: Mapping[str, Implementation]
) -> type[BaseModel] | None:
    model = call_plain(name, origin, implementations, "broker_core_settings")
    if model is None or (inspect.isclass(model) and issubclass(model, BaseModel)):
        return model
    raise PluginLoadError(
        name, origin, f"returned {shown(model)} from broker_core_settings, not a pydantic model class"
    )


def dependencies(
    name: str, origin: str | None, implementations: Mapping[str, Implementation]
) -> frozenset[str]:
    answer = call_plain(name, origin, implementations, "broker_core_depends_on")
    if answer is None:
        return EVERYTHING
    wrong = f"returned {shown(answer)} from broker_core_depends_on, not a set of words"
    if not isinstance(answer, set | frozenset | list | tuple):
        raise PluginLoadError(name, origin, wrong)
    try:
        return checked_words(answer)
    except ValueError as error:
        raise PluginLoadError(name, origin, f"{wrong}: {error}") from None
