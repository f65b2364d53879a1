from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.cli.startup_checks.kafka_acls import kafka_acl_checks
from broker_core.plugin_api.check_findings import Check
from tests.cli.startup_checks.findings import settings
from tests.support.kafka_acls import acl, put_acls

SASL: dict[str, Any] = {"sasl": {"mechanisms": ["PLAIN"]}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.sqlite"


def found(path: Path, *rows: Any, namespace: str = "public/default", **kafka: Any) -> list[Check]:
    with SqliteCatalog(path) as catalog:
        put_acls(catalog, *rows, namespace=namespace)
    return list(kafka_acl_checks(settings(catalog={"path": str(path)}, kafka=kafka)))


def warnings(checks: list[Check]) -> list[str]:
    return [check.text for check in checks if check.level == "warning"]


def test_without_acls_and_super_users_all_is_allowed(path: Path) -> None:
    (check,) = found(path)
    assert (check.level, check.name) == ("ok", "kafka.acls")
    assert list(kafka_acl_checks(settings(catalog={"path": str(path)}))) == []


def test_acls_that_bind_clients_are_counted(path: Path) -> None:
    checks = found(path, acl("a", "READ"), acl("b", "READ", host="::1"), super_users=["User:root"], **SASL)
    assert [(check.level, check.text) for check in checks] == [
        ("ok", "2 ACLs are stored; what none of them allows is denied")
    ]
    checks = found(path, super_users=["User:root"], allow_everyone_if_no_acl_found=True, **SASL)
    assert [check.text for check in checks] == ["0 ACLs are stored; what none of them is about is allowed"]


def test_acls_without_a_listener_have_no_effect(path: Path) -> None:
    found(path, acl("a", "READ"))
    (check,) = kafka_acl_checks(settings(catalog={"path": str(path)}))
    assert (check.level, check.text) == (
        "warning",
        "1 ACL is stored without effect: there is no table [kafka]",
    )
    assert list(kafka_acl_checks(settings(upstream={"service_url": "pulsar://a:6650"}))) == []


def test_a_super_user_that_the_rules_deny(path: Path) -> None:
    def told(authorization: dict[str, Any]) -> list[str]:
        kafka = {**SASL, "super_users": ["User:root", "User:ann"], "namespaces": {"User:ann": "acme/orders"}}
        return warnings(
            list(
                kafka_acl_checks(
                    settings(catalog={"path": str(path)}, kafka=kafka, authorization=authorization)
                )
            )
        )

    orders = {"roles": ["ann"], "namespaces": ["acme/orders"], "actions": ["admin"]}
    assert told({}) == []
    assert told({"super_roles": ["root"], "rules": [orders]}) == []
    (text,) = told({"rules": [orders]})
    assert text == (
        "User:root has no right to admin in namespace public/default: "
        "name its role in authorization.super_roles, or write a rule for it"
    )
    listing = orders | {"actions": ["list"]}
    assert "User:ann has no right to admin in namespace acme/orders" in told({"rules": [listing]})[0]


def test_the_last_acl_may_be_deleted(path: Path) -> None:
    (text,) = warnings(found(path, acl("a", "READ"), **SASL))
    assert "once the last ACL is deleted, everybody may do everything: " in text


def test_acls_of_a_namespace_where_nobody_asks_a_super_user_or_no_address(path: Path) -> None:
    rows = [
        acl("a", "READ", "User:root"),
        acl("a", "READ", host="localhost"),
        acl("a", "READ", host="10.0.0.0/8"),
    ]
    assert warnings(found(path, *rows, super_users=["User:root"], **SASL)) == [
        "1 ACL is stored without effect: no ACL binds User:root; they are kafka.super_users",
        "2 ACLs are stored without effect: no client has the host 10.0.0.0/8, localhost; write an address, or *",
    ]
    (text, *_) = warnings(
        found(path, acl("a", "READ"), namespace="acme/other", super_users=["User:root"], **SASL)
    )
    assert text.startswith("1 ACL is stored without effect: no Kafka client asks in acme/other")
    assert not any(
        "asks in" in text
        for text in warnings(
            found(path, namespaces={"User:ann": "acme/other"}, super_users=["User:root"], **SASL)
        )
    )


def test_without_authentication_there_is_one_principal(path: Path) -> None:
    checks = found(path, acl("a", "READ"), acl("a", "READ", "User:ANONYMOUS"), super_users=["User:root"])
    assert [check.name for check in checks if check.level == "warning"] == ["kafka.acls", "kafka.super_users"]
    first, second = warnings(checks)
    assert first.startswith("1 ACL is stored without effect: no client is User:ann")
    assert second.startswith("no client is User:root")
    assert warnings(found(path, acl("a", "READ", "User:*"), super_users=["User:ANONYMOUS"])) == []


def test_acls_of_a_principal_that_sees_another_namespace(path: Path) -> None:
    kafka = {"namespaces": {"User:ann": "acme/other"}, "super_users": ["User:root"], **SASL}
    rows = [acl("a", "READ", "User:ann"), acl("a", "READ", "User:bob"), acl("a", "READ", "User:*")]
    assert warnings(found(path, *rows, **kafka)) == [
        "1 ACL is stored without effect: they are not in the namespace of User:ann; see [kafka.namespaces]"
    ]


def test_acls_of_principals_in_their_namespaces(path: Path) -> None:
    kafka = {"namespaces": {"User:ann": "acme/other"}, "super_users": ["User:root"], **SASL}
    found(path, acl("a", "READ", "User:bob"), **kafka)
    rows = [acl("a", "READ", "User:ann"), acl("a", "READ", "User:*")]
    assert warnings(found(path, *rows, namespace="acme/other", **kafka)) == []
