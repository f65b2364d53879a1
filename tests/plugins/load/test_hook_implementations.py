"""The hooks of a plugin are checked before any of them is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from broker_core import hookimpl
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.load.hook_implementations import Implementation, call_plain
from tests.support.plugins import PluginOf, loaded


def implementation(function: Callable[..., Any], hook: str = "list_topics") -> Implementation:
    return loaded(PluginOf(**{hook: function})).implementations[f"broker_core_{hook}"]


def test_an_implementation_takes_the_arguments_that_it_names() -> None:
    def function(properties: object, request: object) -> None: ...

    found = implementation(function)
    assert found.arguments == ("properties", "request")
    assert not found.is_async


def test_arguments_with_defaults_get_their_values_too() -> None:
    """Some versions of pluggy would leave them at their defaults, without a word."""

    def function(request: object, mode: object = None, *, properties: object = None) -> None: ...

    assert implementation(function).arguments == ("request", "mode", "properties")


def test_async_functions_are_known() -> None:
    async def function(request: object) -> None: ...

    @functools.wraps(function)
    def wrapped(request: object) -> Any:
        return function(request)

    assert implementation(function).is_async
    assert not implementation(wrapped).is_async  # it gives a coroutine, but only when called
    assert implementation(wrapped).arguments == ("request",)


async def _agen(request: object) -> Any:
    yield request


def _gen(request: object) -> Any:
    yield request


def _required(request: object, *, ttl: int) -> None: ...


def _positional(request: object, /) -> None: ...


def _misspelt(request: object, props: object = None) -> None: ...


def _own(request: object, *, ttl: int = 3) -> None: ...


def _star(*topics: object) -> None: ...


def _stars(request: object, **others: object) -> None: ...


def _decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (_gen, "is a generator"),
        (_agen, "is a generator"),
        (_required, "takes an argument 'ttl', which this hook does not have"),
        (_positional, "takes 'request' by position only: .* leave the / out"),
        (_misspelt, r"takes an argument 'props', .*\(did you mean 'properties'\?\)"),
        (
            _own,
            "takes an argument 'ttl', which this hook does not have: the hook has request, namespace, mode, ",
        ),
        (_star, r"takes \*topics, which stays empty, .*: the hook has request, namespace"),
        (_stars, r"takes \*\*others, which stays empty"),
        (_decorated(_gen), r"takes \*args, .*functools.wraps"),
    ],
)
def test_what_cannot_be_called_is_refused(function: Callable[..., Any], problem: str) -> None:
    with pytest.raises(
        PluginLoadError, match=f"plugin 'p' has an unusable hook: broker_core_list_topics {problem}"
    ):
        implementation(function)


@pytest.mark.parametrize("options", [{"wrapper": True}, {"hookwrapper": True}])
def test_hookwrappers_are_refused(options: dict[str, bool]) -> None:
    with pytest.raises(PluginLoadError, match="is a hookwrapper"):
        loaded(SimpleNamespace(broker_core_list_topics=hookimpl(**options)(_gen)))  # type: ignore[call-overload]


@pytest.mark.parametrize("hook", ["settings", "depends_on", "commands"])
def test_hooks_before_the_loop_are_plain(hook: str) -> None:
    async def function() -> None: ...

    with pytest.raises(PluginLoadError, match=f"broker_core_{hook} is async"):
        implementation(function, hook)


def test_plain_calls_fail_as_load_errors() -> None:
    def broken() -> None:
        raise SystemExit(2)

    found = Implementation("broker_core_depends_on", broken, (), False, False, False)
    with pytest.raises(PluginLoadError, match=r"plugin 'p' \(distribution d 1\) failed in .*SystemExit: 2"):
        call_plain("p", "d 1", {found.hook: found}, found.hook)
    taking = Implementation("h", lambda app: [app], ("app",), False, False, False)
    assert call_plain("p", None, {"h": taking}, "h", {"app": 1, "other": 2}) == [1]
    assert call_plain("p", None, {}, "h") is None, "it is not implemented"


class Model(BaseModel):
    size: int = 1


@pytest.mark.parametrize("answer", [Model(), "Model", dict, 3])
def test_settings_are_a_model_class(answer: object) -> None:
    with pytest.raises(PluginLoadError, match="not a pydantic model class"):
        loaded(PluginOf(settings=lambda: answer))


def test_no_settings_after_all() -> None:
    assert loaded(PluginOf(settings=lambda: None)).options.settings is None
    assert loaded(PluginOf(settings=lambda: Model)).options.settings == Model()


def test_dependencies() -> None:
    everything = {"pattern", "properties", "principal", "client", "address"}
    assert loaded(PluginOf()).depends_on == everything
    assert loaded(PluginOf(depends_on=lambda: None)).depends_on == everything
    assert loaded(PluginOf(depends_on=lambda: ["pattern"])).depends_on == {"pattern"}
    assert loaded(PluginOf(depends_on=lambda: {"property:region"})).depends_on == {"property:region"}
    assert loaded(PluginOf(depends_on=lambda: ())).depends_on == frozenset()


@pytest.mark.parametrize("answer", ["pattern", 3, {"pattern": True}])
def test_wrong_dependencies(answer: object) -> None:
    with pytest.raises(PluginLoadError, match="from broker_core_depends_on, not a set of words"):
        loaded(PluginOf(depends_on=lambda: answer))


@pytest.mark.parametrize("answer", [{"patern"}, [1], [["pattern"]], {"property:"}, {"Pattern"}])
def test_unknown_words(answer: object) -> None:
    with pytest.raises(PluginLoadError, match=r"words are 'pattern', .* and 'property:NAME' for one"):
        loaded(PluginOf(depends_on=lambda: answer))


def test_a_hook_without_arguments_has_none() -> None:
    def function(timeout: float = 5.0) -> None: ...

    with pytest.raises(
        PluginLoadError, match=r"'timeout', which this hook does not have: the hook has none$"
    ):
        implementation(function, "shutdown")


def test_a_method_that_lacks_self_is_refused() -> None:
    class Plugin:
        @hookimpl
        def broker_core_list_topics(request, mode) -> None:  # type: ignore[no-untyped-def]  # noqa: N805
            ...

    with pytest.raises(PluginLoadError, match="is a method whose first argument is 'request': it lacks self"):
        loaded(Plugin())


def test_static_and_class_methods_will_do() -> None:
    class Plugin:
        @staticmethod
        @hookimpl
        def broker_core_list_topics(request: object) -> None: ...

        @classmethod
        @hookimpl
        def broker_core_visible(cls, request: object) -> None: ...

    found = loaded(Plugin()).implementations
    assert [each.arguments for each in found.values()] == [("request",), ("request",)]
