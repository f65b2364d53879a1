"""Fixtures for tests of the command line: running it in this process, and plugins installed for one test."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker_core.cli.command_tree import run


@dataclass(frozen=True)
class Said:
    """How one run ended."""

    code: int
    out: str
    err: str

    @property
    def printed(self) -> str:
        """Standard output of a run that ended well."""
        assert self.code == 0, self.err
        return self.out

    def failed(self, code: int) -> str:
        """Standard error of a run that ended with an exit code."""
        assert self.code == code, self.err
        return self.err

    def refused(self, code: int) -> str:
        """The :attr:`only_error` of a run that ended with an exit code."""
        assert self.code == code, self.err
        return self.only_error

    @property
    def only_error(self) -> str:
        """The one line on standard error of a run that failed and printed nothing else."""
        assert self.code != 0
        assert not self.out
        assert self.err.startswith("broker-core: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("broker-core: ").rstrip("\n")


Cli = Callable[..., Said]
InstallPlugin = Callable[..., None]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    """Runs `broker-core` in this process."""

    def run_it(*arguments: str | Path) -> Said:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Said(code, *capfd.readouterr())

    return run_it


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def install_plugin(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> InstallPlugin:
    """Installs a distribution with one plugin, as a folder on the path: its name, its source, its version."""

    def install(name: str, source: str, *, version: str = "1.2.3") -> None:
        folder = tmp_path_factory.mktemp("site")
        module = "plugin_" + name.replace("-", "_")
        (folder / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        metadata = folder / f"dist_of_{name.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: dist-of-{name}\nVersion: {version}\n", encoding="utf-8"
        )
        (metadata / "entry_points.txt").write_text(f"[broker_core]\n{name} = {module}\n", encoding="utf-8")
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, module, raising=False)  # of another test of this process

    return install
