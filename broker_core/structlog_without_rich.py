"""Keeping rich out of structlog in the processes of `broker-core`, which render their tracebacks themselves.

structlog imports rich and pygments, if they are installed, for tracebacks in colours: 60 ms and 3 MB of the start of a
server. Other modules can import rich as usual; only ``structlog.dev.RichTracebackFormatter`` lacks it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["keep_rich_out_of_structlog"]


def keep_rich_out_of_structlog() -> None:
    """Keep rich out of structlog, in a process of `broker-core`; to be called before structlog is imported."""
    if "structlog" not in sys.modules:
        sys.meta_path.insert(0, _StructlogFinder())


class _StructlogFinder:
    """A finder that only finds structlog, once."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "structlog":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None and "rich" not in sys.modules:
            spec.loader = _LoaderWithoutRich(spec.loader)
        return spec


class _LoaderWithoutRich(Loader):
    """A loader of structlog by its own loader, while rich cannot be found."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        sys.modules["rich"] = None  # type: ignore[assignment]  # an ImportError for who imports it
        try:
            self._loader.exec_module(module)
        finally:
            del sys.modules["rich"]
