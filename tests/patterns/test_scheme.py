"""The scheme of a pattern, removed as a broker does."""

from __future__ import annotations

import pytest

from broker_core.errors import InvalidPattern
from broker_core.patterns import compile_pattern
from broker_core.patterns.topics_pattern import strip_scheme


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("t/n/.*", "t/n/.*"),
        ("persistent://t/n/.*", "t/n/.*"),
        ("non-persistent://t/n/.*", "t/n/.*"),
        ("^persistent://t/n/x.*$", "^t/n/x.*$"),
        ("^non-persistent://t/n/x", "^t/n/x"),
        ("(non-)?persistent://t/n/x", "(non-)?t/n/x"),
        ("persistent://t/n/a://b", "t/n/a"),
        ("xpersistent://t/n/a", "xt/n/a"),
        ("persistent://", ""),
    ],
)
def test_the_scheme_is_removed_as_the_broker_does(raw: str, text: str) -> None:
    assert strip_scheme(raw) == text
    assert compile_pattern(raw).text == text
    assert compile_pattern(raw).raw == raw


@pytest.mark.parametrize(
    "raw", ["http://t/n/x", "://t/n/x", "topic://t/n/x", "PERSISTENT://t/n/x", "(persistent)://a"]
)
def test_another_scheme_is_an_error(raw: str) -> None:
    with pytest.raises(InvalidPattern, match="Does not support topic domain"):
        compile_pattern(raw)
