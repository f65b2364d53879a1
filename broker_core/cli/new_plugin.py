"""New plugins: distributions that run, made from the files in ``plugin_template``.

In these, ``{{name}}`` is the plugin's name, which is the distribution's too, ``{{package}}`` its package,
``{{metric}}`` the prefix of its metrics, and ``{{bound}}`` the least version of broker-core.
``PACKAGE`` in a file's or folder's name is the package too.
"""

from __future__ import annotations

import keyword
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import resources
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.errors import BrokerCoreError

__all__ = ["NameTaken", "check_name", "package_of", "write_plugin"]

#: Valid names of a plugin, of a distribution (PEP 508) and, with ``_`` for ``-``, of a package.
_NAME: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?", re.ASCII)
#: Folders of the project itself: a package of this name would be found in its place.
_FOLDERS: Final = frozenset({"src", "tests"})
_SUFFIX: Final = ".template"
_DOTTED: Final = {"gitignore": ".gitignore"}


class NameTaken(BrokerCoreError):
    """The name is taken already; the message says by what."""


def package_of(name: str) -> str:
    """The package of a plugin: ``tenant_filter`` of ``tenant-filter``."""
    return name.lower().replace("-", "_")


def check_name(name: str) -> None:
    """Raise :exc:`UnusableQuestion` for an invalid name of a plugin, and :exc:`NameTaken` for one that is taken."""
    from broker_core.plugins import RESERVED, installed_plugins

    if not _NAME.fullmatch(name):
        raise UnusableQuestion(
            f"{name!r} cannot name a plugin, its distribution and its package: letters, digits, '-' and '_', 64 at "
            "most, a letter first, and no '-' or '_' last"
        )
    package = package_of(name)
    if name.lower() in RESERVED:
        raise UnusableQuestion(f"{name!r} cannot name a plugin: {RESERVED[name.lower()]} has this name")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names:
        what = "a word of Python" if keyword.iskeyword(package) else "a module of Python"
        raise UnusableQuestion(f"{name!r} cannot name a package: {package!r} is {what}")
    if package in _FOLDERS:
        raise UnusableQuestion(f"{name!r} cannot name a package: its project has a folder of this name")
    for plugin in installed_plugins():
        if package_of(plugin.name) == package:
            raise NameTaken(
                f"a plugin {plugin.name!r} is installed already, by {plugin.origin or 'a distribution'}"
            )
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        pass
    else:
        raise NameTaken(f"a distribution {installed.name!r} is installed already")
    if find_spec(package) is not None:
        raise NameTaken(f"a package {package!r} is installed already: this one would hide it, or be hidden")


def write_plugin(name: str, folder: Path) -> Path:
    """Write the project ``folder/name``, all of it or nothing.

    Raises as :func:`check_name`, :exc:`NameTaken` if it exists, and :exc:`~broker_core.errors.BrokerCoreError` if it
    cannot be written.
    """
    check_name(name)
    target = folder / name
    _refuse_existing(target)
    try:
        _write(name, target)
    except OSError as error:
        raise BrokerCoreError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def _write(name: str, target: Path) -> None:
    # Beside its place, so that it is moved there in one step.
    making = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
    try:
        project = making / name
        for parts, text in _files(name):
            file = project.joinpath(*parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        _refuse_existing(target)
        project.rename(target)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _refuse_existing(target: Path) -> None:
    if os.path.lexists(target):
        raise NameTaken(f"{target} is there already")


def _files(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The files of the project by the parts of their paths, with their texts."""
    from broker_core import __version__
    from broker_core.metrics import metric_prefix

    words = {
        "name": name,
        "package": package_of(name),
        "metric": metric_prefix(name),
        "bound": f">={__version__}" if re.fullmatch(r"[0-9][0-9a-z.]*", __version__) else "",
    }

    def walk(folder: Traversable, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        for entry in sorted(folder.iterdir(), key=lambda each: each.name):
            if entry.is_dir():
                yield from walk(entry, (*above, entry.name.replace("PACKAGE", words["package"])))
            elif entry.name.endswith(_SUFFIX):
                file = entry.name.removesuffix(_SUFFIX).replace("PACKAGE", words["package"])
                text = entry.read_text(encoding="utf-8")
                filled = re.sub(r"\{\{(\w+)\}\}", lambda match: words[match[1]], text)
                yield (*above, _DOTTED.get(file, file)), filled

    return walk(resources.files("broker_core.cli") / "plugin_template", ())
