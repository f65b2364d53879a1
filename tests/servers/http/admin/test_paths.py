"""Paths and parameters of the admin interface: as lenient as a broker's."""

from __future__ import annotations

from pathlib import Path

from tests.support.api_serving import api_served

_LISTING = "/admin/v2/persistent/public/default"


async def test_unknown_and_repeated_parameters_are_no_mistake(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        said = await served.ask(
            f"{_LISTING}?authoritative=false&x=1&x=2&properties=region=us&properties=region=eu"
        )
        assert (said.status, said.json) == (200, ["persistent://public/default/bills"])


async def test_mistakes_have_a_reason(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        for method, path, status in (
            ("GET", f"{_LISTING}?properties=%ff", 400),
            ("GET", "/admin/v2/persistent/public/bad~name", 412),
            ("GET", "/admin/v2/nothing", 404),
            ("GET", "/lookup/v2/nothing", 404),
            ("POST", _LISTING, 405),
        ):
            said = await served.ask(path, method)
            assert said.status == status, path
            assert set(said.json) == {"reason"}


async def test_names_and_namespaces_may_have_braces(tmp_path: Path) -> None:
    for_braces = "/admin/v2/persistent/public/default/%7Bb%7D"
    async with api_served(tmp_path) as served:
        for method, path, status in (
            ("PUT", for_braces, 204),
            ("GET", f"{for_braces}/partitions", 200),
            ("GET", f"{for_braces}/properties", 200),
            ("DELETE", for_braces, 204),
            ("PUT", "/admin/v2/persistent/public/%7Bdefault%7D/b", 412),
            ("GET", "/lookup/v2/topic/persistent/public/default/%7Bb%7D", 501),
        ):
            said = await served.ask(path, method)
            assert said.status == status, (path, said.body)


async def test_they_can_be_turned_off(tmp_path: Path) -> None:
    async with api_served(tmp_path, http={"api": False}) as served:
        assert (await served.ask(_LISTING)).status == 404
