"""The texts of settings that name namespaces."""

from __future__ import annotations

import pytest

from broker_core.settings.namespace_texts import namespace_patterns, namespace_text


@pytest.mark.parametrize("text", ["", "*", "acme", "acme/", "/shop", "/", "a/b/c", "acme//shop"])
def test_it_has_two_parts(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not TENANT/NAMESPACE, such as 'acme/shop'$"):
        namespace_text(text, example="acme/shop")
    assert namespace_text("acme/shop") == "acme/shop"


def test_a_pattern_may_be_all_of_them() -> None:
    patterns = ("*", "acme/*", "*/*")
    assert namespace_patterns(patterns) == patterns
    with pytest.raises(
        ValueError, match=r"^'acme' is not TENANT/NAMESPACE, such as 'acme/\*', nor '\*' for all$"
    ):
        namespace_patterns(("acme/*", "acme"))
