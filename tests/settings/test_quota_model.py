"""``[[quotas]]``: what is taken, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from broker_core.settings import Settings


def test_a_quota_with_its_defaults() -> None:
    (quota,) = Settings.model_validate({"quotas": [{"name": "batch", "requests": 10, "bytes": "1MB"}]}).quotas
    assert (quota.roles, quota.namespaces, quota.addresses, quota.per) == (("*",), ("*",), (), ("role",))
    assert (quota.burst, quota.queue, quota.max_wait) == (5.0, 100, 5.0)


@pytest.mark.parametrize(
    ("quotas", "said"),
    [
        ([{"name": "q"}], "bounds nothing: set requests, bytes or both"),
        ([{"name": "q", "requests": 0}], "greater than or equal to"),
        ([{"name": "q", "requests": 1e-320}], "greater than or equal to"),
        ([{"name": "q", "requests": 1, "roles": [""]}], "a pattern is empty"),
        ([{"name": "q", "requests": 1, "namespaces": ["a"]}], "is not TENANT/NAMESPACE"),
        ([{"name": "q", "requests": 1, "addresses": ["x"]}], "addresses"),
        ([{"name": "q", "requests": 1, "per": ["topic"]}], "per"),
        ([{"name": "a b", "requests": 1}], "name"),
        ([{"name": "q", "requests": 1}] * 2, "two quotas are named 'q'"),
    ],
)
def test_what_is_refused(quotas: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate({"quotas": quotas})
