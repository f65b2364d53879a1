"""[shrink_guard]: its values for single namespaces, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from broker_core.settings import ShrinkGuardSettings, load_settings
from tests.support.files import file_with


def test_tables_of_namespaces(tmp_path: Path) -> None:
    file = file_with(
        tmp_path / "c.toml",
        "[shrink_guard]\nmin_topics = 20\n"
        '[[shrink_guard.namespaces]]\nname = "acme/*"\nmax_ratio = 0.9\nhold = "2h"\n'
        '[[shrink_guard.namespaces]]\nname = "acme/x"\nenabled = false\n',
    )
    own = load_settings(file).settings.shrink_guard
    assert [(each.name, each.enabled, each.max_ratio, each.hold) for each in own.namespaces] == [
        ("acme/*", None, 0.9, 7200.0),
        ("acme/x", False, None, None),
    ]
    assert (own.enabled, own.max_ratio, own.min_topics, own.hold) == (True, 0.5, 20, 3600.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_ratio": 0},
        {"max_ratio": 1.1},
        {"min_topics": 0},
        {"hold": 0},
        {"namespaces": [{"name": "acme"}]},
        {"namespaces": [{"max_ratio": 0.5}]},
    ],
)
def test_what_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ShrinkGuardSettings.model_validate(wrong)
