"""The README's plugins do what the README says, taken from the README itself."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.testing import serve

README = Path(__file__).parent.parent / "README.md"


def snippets(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The README's Python files, importable by the names that their first lines give them."""
    names = []
    for code in snippets("python"):
        if named := re.match(r"# (\w+)\.py\b", code):
            (tmp_path / f"{named[1]}.py").write_text(code, encoding="utf-8")
            names.append(named[1])
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in names:
        sys.modules.pop(name, None)


async def test_the_first_plugin(modules: Path) -> None:
    import team_topics  # type: ignore[import-not-found,import-untyped,unused-ignore]

    default = "persistent://public/default/in-the-catalogue"
    async with serve(plugins={"team-topics": team_topics}, topics=[default]) as server:
        answer = await server.list("public/default", properties={"team": "eu"})
        assert sorted(answer.topics) == [
            f"persistent://public/default/eu-{kind}" for kind in ("bills", "orders")
        ]
        answer = await server.list("public/default", pattern=".*/eu-.*s", properties={"team": "eu"})
        assert answer.filtered
        assert sorted(answer.topics) == [
            f"persistent://public/default/eu-{kind}" for kind in ("bills", "orders")
        ]
        answer = await server.list("public/default", properties={"team": "eu", "role": "audit"})
        assert "persistent://public/default/eu-audit" in answer.topics
        answer = await server.list("public/default")
        assert answer.topics == [default]


def test_a_plugin_of_the_first_section_is_short() -> None:
    first = next(code for code in snippets("python") if code.startswith("# team_topics.py"))
    assert len([line for line in first.splitlines() if line.strip()]) <= 16


def test_the_settings_are_settings() -> None:
    from broker_core.settings import Settings

    read = [Settings(**tomllib.loads(text)) for text in snippets("toml")]
    assert [each.kafka is not None for each in read] == [False, True]


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), f"README.md links to {target}"
