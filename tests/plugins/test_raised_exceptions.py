"""Exceptions of plugins as text, however broken the exceptions are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker_core.errors import Cause, ListingFailed, ServerError, TooManyRequests
from broker_core.plugins.raised_exceptions import (
    LONGEST,
    FailureForClient,
    bounded,
    failure_for_client,
    in_words,
    is_awaitable,
    kind,
    shown,
    text,
    trace,
)
from tests.support.narrowed import present


class Broken(Exception):
    def __str__(self) -> str:
        raise SystemExit("no text")

    __repr__ = __str__


class _NoName(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Nameless(Exception, metaclass=_NoName):
    pass


class Word(str):
    """A string whose own methods are no use."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> str:
        raise RuntimeError

    def encode(self, *_: Any) -> bytes:
        raise RuntimeError

    __len__ = __getitem__  # type: ignore[assignment]


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001
        return caught


def test_words_are_bounded_valid_and_quiet() -> None:
    assert bounded("short") == "short"
    assert len(bounded("x" * 10_000_000)) == LONGEST
    assert bounded("a\ud800b") == "a\\ud800b"
    assert bounded("\x1b[31m\r\x00\x9b two\nlines\t") == "\\x1b[31m\\x0d\\x00\\x9b two\nlines\t"
    assert bounded(Word("fine")) == "fine"


def test_an_ordinary_exception() -> None:
    error = KeyError("x")
    assert (kind(error), text(error), in_words(error)) == ("KeyError", "'x'", "KeyError: 'x'")
    assert in_words(ValueError()) == "ValueError"
    assert shown([1]) == "[1]"


def test_broken_ones() -> None:
    assert in_words(Broken()) == "Broken: (its str() raised SystemExit)"
    assert shown(Broken()) == "an object whose repr() raised SystemExit"
    assert kind(Nameless()) == "an exception whose class has no name"
    for error in (Broken(), Nameless("x"), ValueError("\ud800" * 100_000)):
        assert json.dumps([in_words(error), trace(raised(error))]).encode()


def test_a_group_names_what_it_holds() -> None:
    group = ExceptionGroup("two", [ValueError("a"), ExceptionGroup("deeper", [KeyError("b")])])
    assert in_words(group) == "ExceptionGroup: two (2 sub-exceptions) [ValueError: a; ExceptionGroup]"
    many = BaseExceptionGroup("many", [SystemExit(number) for number in range(9)])
    assert in_words(many).endswith(
        "[SystemExit: 0; SystemExit: 1; SystemExit: 2; SystemExit: 3; SystemExit: 4; …]"
    )
    deep: Exception = ValueError("bottom")
    for _ in range(5000):
        deep = ExceptionGroup("deep", [deep])
    assert in_words(deep) == "ExceptionGroup: deep (1 sub-exception) [ExceptionGroup]"
    assert trace(deep) == in_words(deep)


def test_a_traceback_has_the_causes_in_pythons_order() -> None:
    def fails() -> None:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error

    with pytest.raises(ValueError, match="outer") as caught:
        fails()
    found = trace(caught.value)
    places = [
        found.index(part) for part in ("KeyError: 'inner'", "was the direct cause of", "ValueError: outer")
    ]
    assert places == sorted(places)
    assert found.count("Traceback (most recent call last)") == 2
    assert found.endswith("ValueError: outer")


def test_what_was_being_handled_is_shown_unless_it_is_suppressed() -> None:
    def fails(*, suppress: bool) -> BaseException:
        try:
            try:
                raise KeyError("inner")
            except KeyError:
                if suppress:
                    raise ValueError("outer") from None
                raise ValueError("outer")  # noqa: B904
        except ValueError as error:
            return error

    assert "During handling of the above exception" in trace(fails(suppress=False))
    assert "inner" not in trace(fails(suppress=True))


def test_a_traceback_is_bounded_in_both_directions() -> None:
    def recurse(depth: int) -> None:
        if depth == 0:
            raise ValueError("bottom")
        recurse(depth - 1)

    with pytest.raises(ValueError, match="bottom") as caught:
        recurse(300)
    assert len(trace(caught.value).splitlines()) < 100
    chained: Exception = ValueError("0")
    for number in range(1, 50_000):
        following = ValueError(str(number))
        following.__cause__ = chained
        chained = following
    assert trace(chained).count("direct cause") == 7
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert trace(first).count("direct cause") == 1


def test_what_a_plugin_says_on_purpose() -> None:
    error = ListingFailed("no such tenant\x07", code=ServerError.AuthorizationError, counts=False)
    assert failure_for_client(error) == FailureForClient(
        "no such tenant\\x07", Cause.DENIED, ServerError.AuthorizationError, False
    )
    assert failure_for_client(TooManyRequests("later", reason="r")) == FailureForClient(
        "later", Cause.PERMITS, ServerError.TooManyRequests, False
    )
    assert failure_for_client(ValueError("x")) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("message", None),
        ("message", b"x"),
        ("code", "MetadataError"),
        ("code", 1),
        ("code", 99),
        ("counts", None),
        ("reason", {}),
    ],
)
def test_fields_that_were_set_to_something_else_are_not_believed(field: str, value: object) -> None:
    error = ListingFailed("fine")
    setattr(error, field, value)
    assert failure_for_client(error) is None


def test_a_class_with_a_field_of_its_own_named_cause() -> None:
    class Older(ListingFailed):
        cause = "the disk"  # type: ignore[assignment]

    error = Older("fine", code=ServerError.NotAllowedError)
    error.cause = "the disk"
    told = present(failure_for_client(error))
    assert told.cause is Cause.NOT_ALLOWED


def test_a_class_that_never_called_the_one_it_derives_from() -> None:
    class Lazy(ListingFailed):
        def __init__(self) -> None:
            pass

    class Trap(ListingFailed):
        @property
        def message(self) -> str:
            raise SystemExit

        @message.setter
        def message(self, value: str) -> None:
            pass

    assert failure_for_client(Lazy()) is None
    assert failure_for_client(Trap("x")) is None
    assert in_words(Lazy()) == "Lazy"


def test_a_class_is_not_asked_whether_it_can_be_awaited() -> None:
    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            raise SystemExit(name)

    class Answer(metaclass=Meta):
        """Of a plugin."""

    async def later() -> None:
        """Something to await."""

    class Own:
        def __await__(self) -> Any:
            yield

    coroutine = later()
    assert [is_awaitable(each) for each in (Answer(), 5, coroutine, Own())] == [False, False, True, True]
    coroutine.close()
