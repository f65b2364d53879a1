from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import pytest

from broker_core.lazy_exports import lazy_exports
from tests.test_faces import FACES


def test_a_name_is_imported_once_and_stays() -> None:
    package = ModuleType("json")
    original = sys.modules["json"]
    get = lazy_exports("json", {"JSONDecoder": ".decoder"})
    sys.modules["json"] = package
    try:
        assert get("JSONDecoder") is import_module("json.decoder").JSONDecoder
        assert vars(package)["JSONDecoder"] is get("JSONDecoder")
        with pytest.raises(AttributeError, match="module 'json' has no attribute 'nope'"):
            get("nope")
    finally:
        sys.modules["json"] = original


@pytest.mark.parametrize("name", sorted({"broker_core", *FACES}))
def test_every_name_of_a_package_is_there(name: str) -> None:
    package = import_module(name)
    for exported in package.__all__:
        assert getattr(package, exported) is not None, exported
    with pytest.raises(AttributeError, match="nope"):
        package.nope  # noqa: B018
