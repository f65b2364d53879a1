"""Tokens, certificates and passwords of a client: how they are read, and that nothing shows them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker_core.client import Basic, ClientError, ClientTls, CredentialsFailed, Tls, Token

SECRET = "eyJhbGciOi.SECRET.c2ln"


async def current(auth: Token | Basic) -> bytes | None:
    return await auth.credentials.current()


async def test_a_token_is_text_a_file_or_what_a_function_gives(tmp_path: Path) -> None:
    file = tmp_path / "token.jwt"
    file.write_text(f"{SECRET}\n")

    async def later() -> str:
        return SECRET

    sources: list[Any] = [
        SECRET,
        f" {SECRET}\n",
        f"token:{SECRET}",
        file,
        f"file:{file}",
        f"file://{file}",
        lambda: SECRET,
        later,
        partial(later),
    ]
    for source in sources:
        token = Token(source)
        assert token.credentials.method == "token"
        assert await current(token) == SECRET.encode()


async def test_a_file_and_a_function_are_asked_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token.jwt"
    of_file, of_function = Token(file), Token(file.read_text)
    for text in ("first", "second"):
        file.write_text(text)
        assert await current(of_file) == await current(of_function) == text.encode()


async def test_what_is_no_token_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    for text in ("", "  ", f"{SECRET} {SECRET}", f"{SECRET}\n{SECRET}", "é" + SECRET):
        with pytest.raises(CredentialsFailed) as failed:
            Token(text)
        assert SECRET not in str(failed.value)
        file = tmp_path / "token.jwt"
        file.write_text(text)
        with pytest.raises(CredentialsFailed, match=r"token\.jwt: it is") as failed:
            await current(Token(file))
        assert SECRET not in str(failed.value)
    with pytest.raises(CredentialsFailed, match=r"cannot read the token in .*: No such file"):
        await current(Token(tmp_path / "nothing"))
    with pytest.raises(CredentialsFailed, match="gave bytes, not str"):
        await current(Token(SECRET.encode))  # type: ignore[arg-type]


async def test_a_password() -> None:
    assert Basic("alice", "pw").credentials.method == "basic"
    assert await current(Basic("alice", "pä:w")) == "alice:pä:w".encode()
    assert await current(Basic("alice", lambda: SECRET)) == f"alice:{SECRET}".encode()
    with pytest.raises(ValueError, match="colon"):
        Basic("a:b", "pw")


def test_a_certificate_goes_to_the_tls() -> None:
    auth = Tls("client.pem", "client.key")
    assert auth.credentials.method == "tls"
    tls = auth.added_to(ClientTls(Path("ca.pem"), verify_hostname=False))
    assert tls == ClientTls(Path("ca.pem"), Path("client.pem"), Path("client.key"), verify_hostname=False)
    with pytest.raises(ValueError, match="twice"):
        auth.added_to(tls)


def test_nothing_shows_a_secret() -> None:
    for shown in (Token(SECRET), Token(lambda: SECRET), Basic("alice", SECRET), Token(SECRET).credentials):
        assert SECRET not in repr(shown)
        assert SECRET not in str(shown)
    assert repr(Token(Path("token.jwt"))) == "Token('token.jwt')"
    assert repr(Basic("alice", SECRET)) == "Basic('alice', ...)"
    assert repr(Tls("client.pem")) == "Tls('client.pem')"
    assert issubclass(CredentialsFailed, ClientError)
