"""The policies of a namespace in a real broker's answer."""

from __future__ import annotations

import json

from broker_core.servers.http.admin.policies import POLICIES
from tests.support.vectors import VECTORS

#: What only that namespace has.
_OF_THE_NAMESPACE = {"clusterThatCanDeleteNamespace"}


def test_they_are_those_of_a_new_namespace() -> None:
    recorded = json.loads((VECTORS / "pulsar-4.2.4-admin.json").read_text(encoding="utf-8"))["exchanges"]
    (told,) = (each["answer"] for each in recorded if each["path"] == "/admin/v2/namespaces/public/recorded")
    assert {key: value for key, value in told.items() if key not in _OF_THE_NAMESPACE} == POLICIES
