"""Sealed fields: only the module of a class can write them; a plugin that holds the object cannot.

A plugin holds objects that other requests rely on: a shared listing, a selection that is known to match a pattern.
Python protects no field by itself: ``object.__setattr__`` writes the fields of a frozen class too. So the slot
descriptor of a sealed field is removed from the class. The slot is still in each object, but no attribute reaches it:
reading or writing it takes the descriptor, which only the module of the class keeps.

Immutable dataclasses are copied with some fields changed by name, so that a field added later is never lost: as by
:func:`dataclasses.replace`, in half of its time, since requests are copied for each call of a plugin. The original was
checked when it was made, so ``__init__`` and ``__post_init__`` do not run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

__all__ = ["Sealed", "copied", "seal", "seal_fields", "seal_value", "value_maker"]


class Sealed:
    """Base of classes whose objects are made by functions of their module, and are never changed or copied."""

    __slots__ = ()

    def __init__(self, *_args: Any, **_keywords: Any) -> None:
        raise TypeError(
            f"a {type(self).__name__} is made by the functions that are documented for it, not called"
        )

    def __init_subclass__(cls, **_keywords: Any) -> None:
        if any("_sealed" in vars(base) for base in cls.__mro__[1:]):
            raise TypeError(f"{cls.__mro__[1].__name__} is final: nothing can be a kind of it")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _memo: Any) -> Any:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} stays in its process: send its names")


def seal(owner: type, slot: str) -> Any:
    """Take a slot out of its class; gives its descriptor, whose ``__get__`` reads and ``__set__`` writes it."""
    descriptor = vars(owner)[slot]
    delattr(owner, slot)
    owner._sealed = slot  # type: ignore[attr-defined]  # noqa: SLF001 - it is this module's mark
    return descriptor


def seal_fields(owner: type) -> list[Any]:
    """Make the slots of a value class readable by all and writable by none; returns their setters, in order.

    A frozen dataclass only refuses ``x.field = 1``; objects that are shared must not be writable in any other way.
    """
    setters = []
    for slot in owner.__dict__["__slots__"]:
        if slot == "__weakref__":
            continue
        descriptor = vars(owner)[slot]
        setattr(owner, slot, property(descriptor.__get__, doc=getattr(descriptor, "__doc__", None)))
        setters.append(descriptor.__set__)
    if issubclass(owner, Sealed):
        owner._sealed = "all"  # type: ignore[attr-defined]  # noqa: SLF001 - it is this module's mark
    return setters


def seal_value(owner: type) -> list[Any]:
    """Seal the fields of a class whose objects are made by ``owner(...)``, and may be copied and sent.

    Its fields are set by ``__new__``: an ``__init__`` could be called once more, with other values.
    """
    setters = seal_fields(owner)
    owner.__reduce__ = _made_anew  # type: ignore[method-assign, assignment]
    return setters


def value_maker(owner: type) -> Callable[..., Any]:
    """Seal a class by :func:`seal_value`; returns the function that makes an object of a class and its fields' values,
    in order.
    """
    setters = seal_value(owner)

    def make(kind: type, *values: object) -> Any:
        value: Any = object.__new__(kind)
        for put, each in zip(setters, values, strict=True):
            put(value, each)
        return value

    return make


def _made_anew(value: Any) -> tuple[type, tuple[Any, ...]]:
    slots = [slot for slot in type(value).__slots__ if slot != "__weakref__"]
    return type(value), tuple(getattr(value, slot) for slot in slots)


T = TypeVar("T")

#: The fields of each class that was copied.
_fields: dict[type, tuple[str, ...]] = {}


def copied(value: T, **changes: object) -> T:
    """``value`` with ``changes``. Raises :exc:`TypeError` for an unknown field."""
    kind: Any = type(value)
    names = _fields.get(kind)
    if names is None:
        names = _fields[kind] = tuple(field.name for field in fields(kind))
    copy: T = object.__new__(kind)
    put = object.__setattr__
    for name in names:
        put(copy, name, getattr(value, name))
    for name, change in changes.items():
        if name not in names:
            raise TypeError(f"{kind.__name__} has no field {name!r}")
        put(copy, name, change)
    return copy
