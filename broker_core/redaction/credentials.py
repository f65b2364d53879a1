"""Detection and masking of secrets: passwords, tokens and keys, recognised by their names and by their form.

Two questions are answered here: whether a name (of a setting, a header, an option of an address) belongs to a secret,
and which parts of a text may be shown: of an address or a connection string everything but the password.

Names are split into words (``signing_keys``, ``apiKey``, ``X-Vault-Token``), in singular and plural. The last word may
say that the value is not a secret itself, but its place, or something about it: ``password_file``, ``token_ttl``,
``key_id``. In doubt a value is hidden: an operator finds it in the settings file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

__all__ = [
    "LONGEST_TEXT",
    "MASK",
    "goes_with_login",
    "holds_connection",
    "holds_login",
    "is_secret_name",
    "may_hold_credentials",
    "names_secret_option",
    "shown",
    "shown_each",
    "without_credentials",
]

MASK: Final = "********"
#: Characters that are shown of one text of a client.
LONGEST_TEXT: Final = 1000


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
#: A name with one of these words is the name of a secret.
_SECRET: Final = _words(
    "password passwd passphrase passcode pass pwd pw psk secret token credential cred auth authorization "
    "bearer jwt cookie jaas signature sig sas hmac otp salt seed mnemonic pin session"
)
#: The end of a secret's name whose words are written together: ``accesskey``, ``dbpassword``, ``basicauth``.
_SECRET_END: Final = re.compile(
    r"(?:password|passwd|passphrase|secret|token|credential|authorization|bearer|jaas|basicauth|userinfo|"
    r"(?:api|access|secret|private|signing|auth|shared|master|account|encryption|storage|service)key)s?$"
)
#: Keys that are names of fields, and public keys.
_OPEN_KEY: Final = _words(
    "property partition routing primary foreign sort public cache row column message ordering order group "
    "lookup index unique join hash object field config label record topic"
)
#: Words that may follow the word `key` of a secret.
_OF_KEY: Final = _words("pem base64 b64 hex value data material string current previous old new secondary")
#: Last words that mean the place of a secret, or a fact about it.
_HARMLESS_END: Final = _words(
    "file path dir directory folder claim name id ttl timeout size algorithm env variable type method "
    "mode enabled plugin provider url uri endpoint host port length prefix suffix column field issuer "
    "audience realm scope lifetime expiry interval refresh count limit bytes format location policy "
    "required version age scheme leeway"
)
#: Tables that have a secret among other things, and the names of these other things.
_LOGIN: Final = _words("credential cred auth authentication authorization login")
_BESIDE: Final = _words(
    "user username role account principal tenant database db region zone domain mechanism protocol service "
    "group owner comment description kind class"
)
#: Names of connection strings, of which only the password is a secret.
_CONNECTION: Final = ("dsn", "connectionstring", "connstring", "connstr", "conninfo")

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_ONE_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:(?!://).)*", re.DOTALL)
_OPTIONS: Final = re.compile(r"[?#][\w.%-]+=")
_OPTION: Final = re.compile(r"([?&;#])([^=&;#\s]+)=([^&;#\s]*)")
_NEXT_ADDRESS: Final = re.compile(r",(?=[A-Za-z][A-Za-z0-9+.-]*://)")
_PAIR: Final = re.compile(
    r"""(?<![\w.?&])([A-Za-z][\w.-]*)(\s*=\s*)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s;,&'"]+)""", re.DOTALL
)
#: An option of a command line, and an option with its value after it.
_OPTION_WORD: Final = re.compile(r"--?[A-Za-z][\w-]*")
_OPTION_VALUE: Final = re.compile(
    r"""(?<!\S)(--?[A-Za-z][\w-]*)(\s+)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?!-)\S+)"""
)
#: At the beginning of a quotation in an error: an address without its scheme.
_QUOTED_LOGIN: Final = re.compile(r"(?<=')([^/@:\s']*):(?!//)[^@\s']+@")
_SCHEME_OF_HEADER: Final = re.compile(r"\b(Bearer|Basic|ApiKey)(\s+)[\w+/=.~:-]{4,}")
_JWT: Final = re.compile(r"\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
#: A text with a secret has one of these; the name of a topic, which looks like an address, has none.
_WORTH_A_LOOK: Final = ("=", "@", "earer", "asic", "piKey", "eyJ", "PRIVATE")
#: Alone these are ordinary words of an error: ``expected KEY=VALUE``.
_EVERYDAY: Final = frozenset({"key", "keys", "auth", "pass", "sig", "seed", "session", "pin"})


def is_secret_name(name: str) -> bool:
    """Whether a name is that of a secret."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or _singular(words[-1]) in _HARMLESS_END:
        return [_singular(word) for word in words[-2:]] == ["secret", "id"]
    for place, word in enumerate(words):
        if word in _SECRET or _singular(word) in _SECRET or _SECRET_END.search(word):
            return True
        if _singular(word) == "key":
            following = [each for each in words[place + 1 :] if not each.isdigit()]
            open_key = place > 0 and _singular(words[place - 1]) in _OPEN_KEY
            if not open_key and all(each in _OF_KEY for each in following):
                return True
    return words[-1] == "private" or words[-2:] == ["user", "info"]


def holds_login(name: str) -> bool:
    """Whether a table of this name may hold a secret and related values, such as a user: ``[credentials]``."""
    words = [_singular(word.lower()) for word in _WORD.findall(name)]
    return bool(words) and words[-1] in _LOGIN


def goes_with_login(name: str) -> bool:
    """Whether a value of this name, in a table with a secret, is not a secret itself: ``user``, ``type``."""
    words = [_singular(word.lower()) for word in _WORD.findall(name)]
    return bool(words) and words[-1] in _BESIDE | _HARMLESS_END and not is_secret_name(name)


def names_secret_option(word: str) -> bool:
    """Whether this word of a command line is an option whose value, the next word, is a secret: ``--token``."""
    return _OPTION_WORD.fullmatch(word) is not None and is_secret_name(word)


def holds_connection(name: str) -> bool:
    """Whether a name is that of a connection string, of which all but the password may be shown."""
    words = [_singular(word.lower()) for word in _WORD.findall(name)]
    return "dsn" in words or "".join(words).endswith(_CONNECTION)


def may_hold_credentials(text: str) -> bool:
    """Whether :func:`without_credentials` may change a text, or any part of it."""
    return any(map(text.__contains__, _WORTH_A_LOOK))


def without_credentials(text: str, *, value: bool = False) -> str:
    """Text without the passwords of addresses, of their options and of ``password=...`` pairs, and without tokens.

    With ``value`` it is a setting's whole value, so that an address in it extends to its end.
    """
    # An option of a command line and its value are two words.
    if not may_hold_credentials(text) and not (value and "-" in text and len(text.split(None, 1)) > 1):
        return text
    text = _PRIVATE_KEY.sub(rf"-----BEGIN \1----- {MASK}", text)
    if value and _ONE_ADDRESS.fullmatch(text):
        return _shown_address(text)
    text = _ADDRESS.sub(lambda found: ",".join(map(_shown_address, _NEXT_ADDRESS.split(found[0]))), text)
    if value:
        text = _OPTION_VALUE.sub(_shown_option_value, text)
    text = _PAIR.sub(lambda found: _shown_pair(found, value=value), text)
    text = _QUOTED_LOGIN.sub(rf"\1:{MASK}@", text)
    text = _SCHEME_OF_HEADER.sub(rf"\1\2{MASK}", text)
    return _JWT.sub(MASK, text)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


def _shown_address(text: str) -> str:
    scheme, _, rest = text.partition("://")
    options = _OPTIONS.search(rest)
    cut = len(rest) if options is None else options.start()
    if "@" not in rest[:cut] and not _is_place(rest[:cut]):
        cut = len(rest)  # a password with a ? in it
    head, tail = rest[:cut], rest[cut:]
    login, at, place = head.rpartition("@")
    if at and ("@" in head.partition("/")[0] or not _is_place(login)):
        user, colon, _ = login.partition(":")
        if colon:
            login = f"{user}:{MASK}"
        elif scheme.lower() in ("http", "https"):
            login = MASK  # a token in the place of a user
    return f"{scheme}://{login}{at}{place}{_OPTION.sub(_shown_option, tail)}"


def _is_place(text: str) -> bool:
    """Whether a text is a host, perhaps with a port and a path, and not a user with a password."""
    return re.match(r"(?:\[[^\]]*\]|[^:/@]*)(?::\d*)?(?:,[^/]*)?(?:/|$)", text) is not None


def _shown_option(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}={MASK if is_secret_name(unquote(found[2])) else found[3]}"


def _shown_option_value(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{MASK if names_secret_option(found[1]) else found[3]}"


def _shown_pair(found: re.Match[str], *, value: bool) -> str:
    name = found[1]
    if not is_secret_name(name) or (not value and name.lower() in _EVERYDAY):
        return found[0]
    return f"{name}{found[2]}{MASK}"


def shown(text: str) -> str:
    """Text of a client for a line of the log: its beginning, without credentials."""
    if len(text) > LONGEST_TEXT:
        return shown(text[:LONGEST_TEXT]) + "…"
    return without_credentials(text, value=True)


def shown_each(texts: Sequence[str]) -> Sequence[str]:
    """Many texts of clients for a line of the log; most are names, and one look finds that all may be shown."""
    together = "".join(texts)
    if (
        max(map(len, texts), default=0) <= LONGEST_TEXT
        and len(together.split(None, 1)) <= 1
        and not may_hold_credentials(together)
    ):
        return texts
    return [shown(text) for text in texts]
