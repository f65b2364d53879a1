from __future__ import annotations

from typing import Any

import pytest

from broker_core.settings.mask_secrets import MASK, masked

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
        "authorization",
        "bearer",
        "passwords",
        "accesskey",
        "secret_id",
        "signing_keys",
        "sasl_jaas_config",
        "basicauth",
        "pw",
        "key",
        "auth",
        "private_key",
        "nkey_seed",
        "pin",
        "session",
        "userinfo",
        "user_info",
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
        "session_timeout",
        "pinned",
        "seeds_file",
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
    assert masked(("plugins", "p", "url"), WITH_PASSWORD) == f"postgres://app:{MASK}@db:5432/topics"
    assert masked(("upstream", "service_url"), "pulsar://127.0.0.1:6651") == "pulsar://127.0.0.1:6651"
    assert masked(("plugins", "p", "urls"), [WITH_PASSWORD]) == [f"postgres://app:{MASK}@db:5432/topics"]


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


def test_the_name_of_a_header_counts_and_that_of_its_table_does_not() -> None:
    headers = {"Authorization": "Bearer abc", "X-Api-Key": "abc", "Cookie": "a=b", "Accept": "*/*"}
    shown = masked(("plugins", "p", "headers"), headers)
    assert shown == dict.fromkeys(headers, MASK) | {"Accept": "*/*"}


@pytest.mark.parametrize("key", ["dsn", "listen_dsn", "connection_string", "conninfo", "anything"])
def test_of_a_connection_string_the_password_alone_is_hidden(key: str) -> None:
    hidden = f"postgres://app:{MASK}@db:5432/topics?sslpassword={MASK}&sslmode=require"
    assert masked(("plugins", "p", key), WITH_PASSWORD + "?sslpassword=x&sslmode=require") == hidden
    keywords = "host=db user=app password='it\\'s' dbname=topics"
    assert masked(("plugins", "p", key), keywords) == f"host=db user=app password={MASK} dbname=topics"
    assert masked(("plugins", "p", key), "postgresql:///topics") == "postgresql:///topics"


@pytest.mark.parametrize("key", ["dsn", "connection_string"])
def test_a_connection_string_that_cannot_be_read_is_hidden(key: str) -> None:
    assert masked(("plugins", "p", key), "hunter2") == MASK
    assert masked(("plugins", "p", key), "") == ""


def test_the_file_that_a_key_is_in_is_shown() -> None:
    assert masked(("plugins", "p", "ssl_key"), "/etc/ssl/broker.pem") == "/etc/ssl/broker.pem"
    assert masked(("plugins", "p", "ssl_key"), "/9j4AAQSkZJRg") == MASK


def test_secrets_of_the_core_are_masked_too() -> None:
    assert masked(("access", "signing_key"), "hunter2") == MASK
    assert masked(("limits", "property_bytes"), 10) == 10


@pytest.mark.parametrize("table", ["credentials", "auth", "authentication", "credential"])
def test_what_goes_with_a_secret_in_its_table_is_shown(table: str) -> None:
    given = {"user": "app", "type": "basic", "password_file": "x", "password": "hunter2", "alice": "hunter2"}
    shown = masked(("plugins", "p"), {table: given})[table]
    hidden = {"password": MASK} | ({} if table == "authentication" else {"alice": MASK})
    assert shown == given | hidden
    assert masked(("plugins", "p", "passwords", "user"), "hunter2") == MASK, "a map of users to passwords"


def test_the_words_of_a_command_line() -> None:
    secret = "hunter2"
    assert masked(("plugins", "p", "args"), ["--token", secret, "--user", "app", "-v"]) == [
        "--token",
        MASK,
        "--user",
        "app",
        "-v",
    ]
    assert masked(("plugins", "p", "args"), [f"--token={secret}"]) == [f"--token={MASK}"]
    assert masked(("plugins", "p", "args"), ["--token-file", "f", "--api-key"]) == [
        "--token-file",
        "f",
        "--api-key",
    ]
    command = masked(("plugins", "p", "command"), f"run --password '{secret} x' --token {secret} --name n")
    assert command == f"run --password {MASK} --token {MASK} --name n"
