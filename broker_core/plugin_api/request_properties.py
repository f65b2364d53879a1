"""The properties of a request: an immutable mapping, which an object that it is compared with cannot change either."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Final, Self, final

from broker_core.immutable import Sealed, seal

__all__ = ["NO_PROPERTIES", "Properties"]


@final
class Properties(Sealed, Mapping[str, str]):
    """Text by name, as :class:`types.MappingProxyType` shows a ``dict``, without a way to that ``dict``.

    The proxy hands its ``dict`` to the ``__eq__`` and ``__or__`` of what it is compared and joined with, and so do the
    views of its items and keys; here they get a copy.
    """

    __slots__ = ("_pairs",)

    def __new__(cls, pairs: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> Self:
        properties = object.__new__(cls)
        _put_pairs(properties, dict(pairs))
        return properties

    def __init__(self, pairs: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        """``pairs`` are copied; of a repeated name, the last counts."""

    def __getitem__(self, name: str) -> str:
        return _pairs(self)[name]

    def __contains__(self, name: object) -> bool:
        return name in _pairs(self)

    def __iter__(self) -> Iterator[str]:
        return iter(_pairs(self))

    def __len__(self) -> int:
        return len(_pairs(self))

    def get(self, name: str, default: Any = None) -> Any:
        return _pairs(self).get(name, default)

    def copy(self) -> dict[str, str]:
        """The properties as a new ``dict``."""
        return _pairs(self).copy()

    def keys(self) -> KeysView[str]:
        return self.copy().keys()

    def items(self) -> ItemsView[str, str]:
        return self.copy().items()

    def values(self) -> ValuesView[str]:
        return self.copy().values()

    def __reversed__(self) -> Iterator[str]:
        return reversed(_pairs(self))

    def __or__(self, other: Any) -> Any:
        return self.copy() | (other.copy() if type(other) is Properties else other)

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __reduce__(self) -> tuple[type[Properties], tuple[dict[str, str]]]:  # type: ignore[override]
        return Properties, (self.copy(),)

    def __repr__(self) -> str:
        return repr(self.copy())


_descriptor: Final = seal(Properties, "_pairs")
_put_pairs: Final = _descriptor.__set__
_pairs: Final[Callable[[Properties], dict[str, str]]] = _descriptor.__get__

#: Of a request without any.
NO_PROPERTIES: Final = Properties()
