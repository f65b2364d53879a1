"""The four distributions of this repository: their folders, packages and what their pyproject.toml declares."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CORE", "DISTRIBUTIONS", "PLUGINS", "ROOT", "Distribution"]

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Distribution:
    """One distribution: its name, the folder of its pyproject.toml, and its one package."""

    name: str
    folder: Path
    package: str

    @property
    def sources(self) -> Path:
        """The folder of the package."""
        return self.folder / self.package

    @property
    def pyproject(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def project(self) -> dict[str, Any]:
        """The table ``[project]``."""
        table: dict[str, Any] = self.pyproject["project"]
        return table

    def __str__(self) -> str:
        return self.name


CORE = Distribution("broker-core", ROOT, "broker_core")
PLUGINS = (
    Distribution("broker-core-explorer", ROOT / "plugins" / "explorer", "broker_core_explorer"),
    Distribution("broker-core-postgres", ROOT / "plugins" / "postgres", "broker_core_postgres"),
    Distribution("broker-core-spark", ROOT / "plugins" / "spark", "broker_core_spark"),
)
DISTRIBUTIONS = (CORE, *PLUGINS)
