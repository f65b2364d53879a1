"""Names of namespaces: valid ones, and the errors of invalid ones."""

from __future__ import annotations

import pytest

from broker_core.errors import InvalidName
from broker_core.names import NamespaceName


@pytest.mark.parametrize("text", ["public/default", "t/n", "a-b=c:d.e_F/0", "-/-", "./..", "T_1/N=2"])
def test_a_namespace_is_written_as_it_was_read(text: str) -> None:
    namespace = NamespaceName.parse(text)
    assert str(namespace) == text
    assert f"{namespace.tenant}/{namespace.namespace}" == text
    assert NamespaceName(namespace.tenant, namespace.namespace) == namespace


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected tenant/namespace"),
        ("public", "expected tenant/namespace"),
        ("t/cluster/n", "expected tenant/namespace"),
        ("t//n", "expected tenant/namespace"),
        ("persistent://t/n", "expected tenant/namespace"),
        ("/n", "the tenant '' must be"),
        ("t/", "the namespace '' must be"),
        ("t t/n", "the tenant 't t' must be"),
        ("t/ñ", "the namespace 'ñ' must be"),
        ("t/n\n", r"the namespace 'n\\n' must be"),
        ("t/٣", "must be"),
        ("t/n*", "must be"),
    ],
)
def test_what_is_no_namespace_says_why(text: str, says: str) -> None:
    with pytest.raises(InvalidName, match=says):
        NamespaceName.parse(text)


def test_building_a_namespace_checks_it_too() -> None:
    with pytest.raises(InvalidName):
        NamespaceName("a/b", "c")
