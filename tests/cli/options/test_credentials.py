from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker_core.cli.options.credentials import NO_CREDENTIALS, GivenCredentials, UnusableCredentials
from tests.support.files import file_with
from tests.support.narrowed import present


def test_without_options_there_are_none() -> None:
    assert NO_CREDENTIALS.token() is None
    assert NO_CREDENTIALS.of_client() is None
    assert NO_CREDENTIALS.tls().certificate is None
    NO_CREDENTIALS.refuse_certificates("http://h")


def test_a_token_is_that_of_the_file(tmp_path: Path) -> None:
    file = file_with(tmp_path / "token", "  aaa.bbb.ccc\n")
    given = GivenCredentials(token_file=file)
    assert given.token() == "aaa.bbb.ccc"
    credentials = present(given.of_client())
    assert (credentials.method, asyncio.run(credentials.current())) == ("token", b"aaa.bbb.ccc")
    assert "aaa" not in repr(given) + repr(credentials)


@pytest.mark.parametrize("content", [b"", b" \n", b"a b", b"a\nb", b"\xff\xfe", b"a\0b", b"x" * 70_000])
def test_what_is_no_token_is_not_shown(tmp_path: Path, content: bytes) -> None:
    file = file_with(tmp_path / "token", content)
    with pytest.raises(UnusableCredentials) as caught:
        GivenCredentials(token_file=file).token()
    assert str(caught.value) == f"--token-file {file}: there is no token in it"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableCredentials, match="no such file"):
        GivenCredentials(token_file=tmp_path / "none").token()


def test_certificates() -> None:
    given = GivenCredentials(cert=Path("c.pem"), key=Path("k.pem"), ca=Path("ca.pem"))
    tls = given.tls()
    assert (tls.certificate, tls.key, tls.ca) == (Path("c.pem"), Path("k.pem"), Path("ca.pem"))
    credentials = present(given.of_client())
    assert credentials.method == "tls"
    with pytest.raises(UnusableCredentials, match="--key is the key of a certificate"):
        GivenCredentials(key=Path("k.pem")).tls()
    with pytest.raises(UnusableCredentials, match="http://h has none"):
        given.refuse_certificates("http://h")


def test_a_token_is_preferred_to_a_certificate(tmp_path: Path) -> None:
    file = file_with(tmp_path / "token", "t")
    credentials = present(GivenCredentials(token_file=file, cert=Path("c.pem")).of_client())
    assert credentials.method == "token"


def test_a_password_is_the_first_line_of_the_file(tmp_path: Path) -> None:
    file = file_with(tmp_path / "password", "pass wörd\r\nmore\n")
    given = GivenCredentials(user="alice", password_file=file)
    credentials = present(given.of_client())
    assert credentials.method == "basic"
    assert asyncio.run(credentials.current()) == "alice:pass wörd".encode()
    assert given.of_http() == "Basic YWxpY2U6cGFzcyB3w7ZyZA=="
    assert "pass" not in repr(credentials)
