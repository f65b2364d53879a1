"""No secret in this file stands in an address as it would in a real one: the test of the tree finds those."""

from __future__ import annotations

import pytest

from broker_core.redaction.credentials import (
    MASK,
    holds_connection,
    is_secret_name,
    shown,
    shown_each,
    without_credentials,
)

SECRET = "hunt" + "er2"
USER = "u:"
LOGIN = f"app:{SECRET}" + "@"

SECRETS = """
authorization bearer passwords accesskey secret_id signing_keys sasl_jaas_config basicauth pw password apiKey API-KEY
X-Vault-Token Proxy-Authorization Cookie authParams client_secret private_key db_pass AccountKey SharedAccessKey secrets
hmac key keys encryptionKey2 key_pem userPassword PGPASSWORD sslpassword refreshTokens passphrase pwd dbpassword
"""
OPEN = """
deadline monkey token_file key_path tokens_ttl property_keys keyword author secret_name password_file password_env
key_id access_key_id partition_key public_key primary_keys token_url auth_method key_column passfile store_options
headers bypass compass keep_alive heap_permits client_id tokenizer dsn url replicas
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_a_secret_by_its_name(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OPEN.split())
def test_what_is_none(name: str) -> None:
    assert not is_secret_name(name)


def test_connection_strings_by_their_names() -> None:
    assert all(
        map(holds_connection, ("dsn", "listen_dsn", "connection_string", "connectionStrings", "CONN_STR"))
    )
    assert not any(map(holds_connection, ("url", "string", "connections", "dsname")))


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"postgresql://{LOGIN}h/db", f"postgresql://app:{MASK}@h/db"),
        (f"postgresql://{LOGIN}h1:5432,h2/db?x=1", f"postgresql://app:{MASK}@h1:5432,h2/db?x=1"),
        (
            f"postgresql://h/db?user=u&password={SECRET}&sslpassword={SECRET}",
            f"postgresql://h/db?user=u&password={MASK}&sslpassword={MASK}",
        ),
        # Not escaped, as nobody should write it and everybody does.
        (f"postgresql://{USER}a@b/{SECRET}@h/db", f"postgresql://u:{MASK}@h/db"),
        (f"postgresql://u:{SECRET}/x@h/db", f"postgresql://u:{MASK}@h/db"),
        (f"postgresql://u:{SECRET}?x=1@h/db", f"postgresql://u:{MASK}@h/db"),
        (f"redis://:{SECRET}@h:1/0", f"redis://:{MASK}@h:1/0"),
        (f"https://{SECRET}@h/a", f"https://{MASK}@h/a"),
        (f"https://h/x?X-Amz-Signature={SECRET}&a=1#f", f"https://h/x?X-Amz-Signature={MASK}&a=1#f"),
        (f"a://{LOGIN}h,b://{LOGIN}h", f"a://app:{MASK}@h,b://app:{MASK}@h"),
        ("postgresql://user@h/db", "postgresql://user@h/db"),
        ("http://h:8080/a@b", "http://h:8080/a@b"),
        ("pulsar://[::1]:6650,h:6651", "pulsar://[::1]:6650,h:6651"),
        (f"cannot open 'x://{LOGIN}h': refused", f"cannot open 'x://app:{MASK}@h': refused"),
        (f"'{LOGIN}h:1' is no address", f"'app:{MASK}@h:1' is no address"),
        (f"host=h password={SECRET} user=u", f"host=h password={MASK} user=u"),
        (f"password = 'a {SECRET}' user=u", f"password = {MASK} user=u"),
        (f"Server=h;Password={SECRET};Database=d", f"Server=h;Password={MASK};Database=d"),
        (f"--token={SECRET}", f"--token={MASK}"),
        (f"Authorization: Bearer {SECRET}", f"Authorization: Bearer {MASK}"),
        ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.abc is expired", f"{MASK} is expired"),
        ("-----BEGIN PRIVATE " + f"KEY-----\n{SECRET}", f"-----BEGIN PRIVATE KEY----- {MASK}"),
        ("expected KEY=VALUE such as region=eu", "expected KEY=VALUE such as region=eu"),
        ("plugins.p.password: unknown key", "plugins.p.password: unknown key"),
        ("someone@example.com", "someone@example.com"),
    ],
)
def test_what_of_a_text_is_shown(text: str, rest: str) -> None:
    assert without_credentials(text) == rest
    assert without_credentials(rest) == rest


def test_an_address_that_is_the_whole_value_ends_where_it_ends() -> None:
    assert (
        without_credentials(f"postgresql://u:a b {SECRET}@h/db", value=True) == f"postgresql://u:{MASK}@h/db"
    )


def test_text_of_clients_is_cut_and_has_no_credentials() -> None:
    assert shown("acme/shop/orders-.*") == "acme/shop/orders-.*"
    assert shown("persistent://acme/shop/orders-.*") == "persistent://acme/shop/orders-.*"
    assert shown("x" * 5000) == "x" * 1000 + "…"
    assert "hunter2" not in shown("host=db password=hunter2")
    assert "eyJhbGci" not in shown("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln")


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["a", "b"],
        ["a b"],
        ["a", "--password geheim"],
        ["a", "token=geheim"],
        ["e", "yJhbGciOiJub25lIn0.e30"],
        ["x" * 1001],
        [" a", "b "],
    ],
)
def test_many_texts_are_shown_as_each_is(texts: list[str]) -> None:
    assert shown_each(texts) == [shown(text) for text in texts]
