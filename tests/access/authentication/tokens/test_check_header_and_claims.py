"""Claims and headers, decided on as Pulsar's brokers decide: docs/reference/pulsar-behaviour.md#tokens"""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.access.authentication.failures import AuthenticationFailed
from broker_core.access.authentication.tokens.check_header_and_claims import check_header, principal_of
from broker_core.access.principal import Principal
from broker_core.settings import TokenSettings
from tests.support.one_test import in_one_test

NOW = 1_700_000_000.5


def _role(claims: dict[str, Any], **settings: Any) -> str:
    return principal_of({"sub": "alice", **claims}, TokenSettings.model_validate(settings), NOW).role


def _reason(claims: dict[str, Any], **settings: Any) -> str:
    with pytest.raises(AuthenticationFailed) as refused:
        _role(claims, **settings)
    assert "hunter2" not in str(refused.value)
    return refused.value.reason


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"iat": NOW + 9999},
        {"exp": NOW + 10, "iat": NOW + 9999},
        {"exp": NOW + 10},
        {"exp": int(NOW) + 10},
        {"exp": str(int(NOW) + 10)},
        {"exp": f"+{int(NOW) + 10}"},
        {"exp": "2030-01-02T03:04:05Z"},
        {"exp": "2030-01-02T03:04:05.678Z"},
        {"nbf": NOW - 10},
        {"nbf": str(int(NOW))},
        {"nbf": "2001-01-02T03:04:05Z"},
        {"exp": None, "nbf": "", "iat": []},
        {"exp": {}, "nbf": [], "iat": "  "},
        {"iss": "me", "jti": "1"},
        {"iss": None, "jti": "", "aud": []},
    ],
)
def test_accepted(claims: dict[str, Any]) -> None:
    assert _role(claims) == "alice"


@in_one_test(
    "claims, reason",
    [
        ({"exp": int(NOW) - 1}, "expired"),
        ({"exp": NOW}, "expired"),  # whole seconds
        ({"exp": str(int(NOW) - 1)}, "expired"),
        ({"exp": "2001-01-02T03:04:05Z"}, "expired"),
        ({"exp": -1}, "expired"),
        ({"nbf": int(NOW) + 1}, "not_yet_valid"),
        ({"nbf": "2030-01-02T03:04:05.678Z"}, "not_yet_valid"),
        *(
            ({name: value}, "bad_token")
            for name in ("exp", "nbf", "iat")
            for value in (
                "soon",
                10**400,
                -(10**400),
                True,
                False,
                [1],
                {"a": 1},
                1e300,
                "1e5",
                "2030-01-02",
                "2030-13-02T03:04:05Z",
                "9" * 30,
            )
        ),
        *(({name: value}, "bad_token") for name in ("iss", "jti") for value in (7, True, ["a"], {"a": "b"})),
    ],
)
def test_refused(claims: dict[str, Any], reason: str) -> None:
    assert _reason(claims) == reason


def test_leeway_moves_both_ends() -> None:
    assert _role({"exp": int(NOW) - 4}, leeway=5) == "alice"
    assert _reason({"exp": int(NOW) - 6}, leeway=5) == "expired"
    assert _role({"nbf": int(NOW) + 5}, leeway=5) == "alice"
    assert _reason({"nbf": int(NOW) + 7}, leeway=5) == "not_yet_valid"


def test_the_principal_ends_with_the_token() -> None:
    def end(claims: dict[str, Any], leeway: float = 0) -> float | None:
        settings = TokenSettings(leeway=leeway)
        return principal_of({"sub": "alice", **claims}, settings, NOW).expires_at

    assert end({}) is None
    assert end({"exp": NOW + 10.7}) == int(NOW + 10.7)
    assert end({"exp": NOW + 10}, 5) == int(NOW + 10) + 5
    assert end({"exp": "2030-01-02T03:04:05.5Z"}) == 1_893_553_445.5


@pytest.mark.parametrize("audience", ["other", ["a", "b"], "", [], None])
def test_an_audience_is_no_matter_unless_configured(audience: object) -> None:
    assert _role({"aud": audience}) == "alice"


@pytest.mark.parametrize("audience", [7, True, {"a": "b"}, ["a", 7], ["a", None], [["a"]]])
@pytest.mark.parametrize("configured", ["", "a"])
def test_an_audience_of_another_kind_is_refused(audience: object, configured: str) -> None:
    assert _reason({"aud": audience}, audience=configured) == "bad_token"


@pytest.mark.parametrize("audience", ["pulsar", ["pulsar"], ["other", "pulsar"]])
def test_a_configured_audience(audience: object) -> None:
    assert _role({"aud": audience}, audience="pulsar") == "alice"


@pytest.mark.parametrize("audience", ["other", "Pulsar", "pulsar ", "", [], None, ["PULSAR"], ["other"]])
def test_without_the_configured_audience(audience: object) -> None:
    assert _reason({"aud": audience}, audience="pulsar") == "audience"


def test_a_configured_issuer() -> None:
    assert _role({"iss": "me"}, issuer="me") == "alice"
    assert _reason({"iss": "Me"}, issuer="me") == "issuer"
    assert _reason({}, issuer="me") == "issuer"


@pytest.mark.parametrize("subject", [["alice"], [], 7, True, {"a": "b"}])
@pytest.mark.parametrize("claim", ["sub", "roles"])
def test_a_subject_that_is_no_text(subject: object, claim: str) -> None:
    reason = _reason({"sub": subject, "roles": None}, subject_claim=claim)
    assert reason == ("no_subject" if subject == [] else "bad_token")


@pytest.mark.parametrize("subject", [None, "", [], {}, "  ", "\t"])
def test_no_subject_is_always_refused(subject: object) -> None:
    assert _reason({"sub": subject}) == "no_subject"
    with pytest.raises(AuthenticationFailed) as refused:
        principal_of({}, TokenSettings(), NOW)
    assert refused.value.reason == "no_subject"


@pytest.mark.parametrize(
    ("value", "role"),
    [
        ("ops", "ops"),
        (["ops", "dev"], "ops"),
        ([7], "7"),
        ([True], "true"),
        ([1.5], "1.5"),
        (["ops", 7], "ops"),
    ],
)
def test_the_role_in_another_claim(value: object, role: str) -> None:
    assert _role({"roles": value, "sub": None}, subject_claim="roles") == role
    assert _role({"roles": value}, subject_claim="roles") == role


@pytest.mark.parametrize("value", [7, True, {"a": "b"}, [["ops"]], [{"a": "b"}]])
def test_another_claim_of_a_wrong_kind(value: object) -> None:
    assert _reason({"roles": value}, subject_claim="roles") == "bad_token"


@pytest.mark.parametrize("value", [None, "", [], [""], [None], "  "])
def test_another_claim_without_a_role(value: object) -> None:
    assert _reason({"roles": value}, subject_claim="roles") == "no_subject"


@pytest.mark.parametrize("subject", ["a\nb", "a\x00", "x" * 1025, "\ud800"])
def test_a_subject_that_is_no_role(subject: str) -> None:
    assert _reason({"sub": subject}) == "bad_role"


def test_a_role_is_not_stripped() -> None:
    assert principal_of({"sub": " alice "}, TokenSettings(), NOW) == Principal(" alice ")


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ({"alg": "RS256"}, ("RS256", None)),
        ({"alg": "RS256", "kid": "1", "typ": "JWT"}, ("RS256", "1")),
        ({"alg": "RS256", "kid": "", "typ": None, "cty": "", "crit": [], "zip": None}, ("RS256", None)),
        ({"alg": "RS256", "jku": "https://keys.example", "b64": False}, ("RS256", None)),
    ],
)
def test_headers(header: dict[str, Any], found: tuple[str, str | None]) -> None:
    assert check_header(header) == found


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"alg": ""},
        {"alg": None},
        {"alg": 7},
        {"alg": ["RS256"]},
        {"alg": "RS256", "kid": 7},
        {"alg": "RS256", "kid": ["1"]},
        {"alg": "RS256", "typ": 7},
        {"alg": "RS256", "cty": "JWT"},
        {"alg": "RS256", "cty": 7},
        {"alg": "RS256", "crit": ["exp"]},
        {"alg": "RS256", "crit": "b64"},
        {"alg": "RS256", "zip": "DEF"},
        {"alg": "RS256", "zip": "GZIP"},
    ],
)
def test_wrong_headers(header: dict[str, Any]) -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        check_header(header)
    assert refused.value.reason == "bad_token"
