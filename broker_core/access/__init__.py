"""Access: identities, authentication, and the questions to gates and rules before a request is served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.access.asker import (
        ACTIONS,
        OPERATOR,
        Access,
        Asker,
        Refused,
        host_of,
        is_within,
        network_of,
        same_address,
    )
    from broker_core.access.authentication.authenticator import Authenticator, Grounds
    from broker_core.access.authentication.basic.htpasswd_file import read_htpasswd
    from broker_core.access.authentication.failures import (
        FAILED,
        AuthenticationFailed,
        InvalidRoles,
        bad_password,
        unusable_reason,
    )
    from broker_core.access.authentication.password_threads import PasswordThreads
    from broker_core.access.authentication.tokens.check_header_and_claims import check_header, principal_of
    from broker_core.access.authentication.tokens.compact_token import CompactToken, MalformedToken, read_json
    from broker_core.access.authentication.tokens.key_kinds import algorithms_for
    from broker_core.access.authentication.tokens.signing import (
        new_key_pair,
        new_secret,
        private_key,
        signed_token,
    )
    from broker_core.access.authentication.tokens.token_keys import MOST_TRIED, TokenKeys
    from broker_core.access.authorization import RULE_ACTIONS, Authorization, rule_text
    from broker_core.access.clients import Client, ClientFilter, Clients, RunningRequest, note_held
    from broker_core.access.connection_credentials import ClientCredentials, Sessions
    from broker_core.access.names_lost_by_rules import (
        MOST_PAIRS,
        LostNames,
        names_elsewhere,
        names_lost,
        without_topics,
    )
    from broker_core.access.peer import Peer
    from broker_core.access.principal import LONGEST_ROLE, Principal
    from broker_core.access.rule_warnings import unmatched_topics, unused_rules
    from broker_core.access.wide_access import wide_settings

__all__ = [
    "ACTIONS",
    "FAILED",
    "LONGEST_ROLE",
    "MOST_PAIRS",
    "MOST_TRIED",
    "OPERATOR",
    "RULE_ACTIONS",
    "Access",
    "Asker",
    "AuthenticationFailed",
    "Authenticator",
    "Authorization",
    "Client",
    "ClientCredentials",
    "ClientFilter",
    "Clients",
    "CompactToken",
    "Grounds",
    "InvalidRoles",
    "LostNames",
    "MalformedToken",
    "PasswordThreads",
    "Peer",
    "Principal",
    "Refused",
    "RunningRequest",
    "Sessions",
    "TokenKeys",
    "algorithms_for",
    "bad_password",
    "check_header",
    "host_of",
    "is_within",
    "names_elsewhere",
    "names_lost",
    "network_of",
    "new_key_pair",
    "new_secret",
    "note_held",
    "principal_of",
    "private_key",
    "read_htpasswd",
    "read_json",
    "rule_text",
    "same_address",
    "signed_token",
    "unmatched_topics",
    "unusable_reason",
    "unused_rules",
    "wide_settings",
    "without_topics",
]

# A command that needs a name of it does not wait for all the others.
__getattr__ = lazy_exports(
    __name__,
    {
        "ACTIONS": ".asker",
        "Access": ".asker",
        "Asker": ".asker",
        "AuthenticationFailed": ".authentication.failures",
        "Authenticator": ".authentication.authenticator",
        "Authorization": ".authorization",
        "Client": ".clients",
        "ClientCredentials": ".connection_credentials",
        "ClientFilter": ".clients",
        "Clients": ".clients",
        "CompactToken": ".authentication.tokens.compact_token",
        "FAILED": ".authentication.failures",
        "Grounds": ".authentication.authenticator",
        "InvalidRoles": ".authentication.failures",
        "LONGEST_ROLE": ".principal",
        "LostNames": ".names_lost_by_rules",
        "MOST_PAIRS": ".names_lost_by_rules",
        "MOST_TRIED": ".authentication.tokens.token_keys",
        "MalformedToken": ".authentication.tokens.compact_token",
        "OPERATOR": ".asker",
        "PasswordThreads": ".authentication.password_threads",
        "Peer": ".peer",
        "Principal": ".principal",
        "RULE_ACTIONS": ".authorization",
        "Refused": ".asker",
        "Sessions": ".connection_credentials",
        "TokenKeys": ".authentication.tokens.token_keys",
        "RunningRequest": ".clients",
        "algorithms_for": ".authentication.tokens.key_kinds",
        "bad_password": ".authentication.failures",
        "check_header": ".authentication.tokens.check_header_and_claims",
        "host_of": ".asker",
        "is_within": ".asker",
        "names_elsewhere": ".names_lost_by_rules",
        "names_lost": ".names_lost_by_rules",
        "network_of": ".asker",
        "new_key_pair": ".authentication.tokens.signing",
        "new_secret": ".authentication.tokens.signing",
        "note_held": ".clients",
        "principal_of": ".authentication.tokens.check_header_and_claims",
        "private_key": ".authentication.tokens.signing",
        "read_htpasswd": ".authentication.basic.htpasswd_file",
        "read_json": ".authentication.tokens.compact_token",
        "rule_text": ".authorization",
        "same_address": ".asker",
        "signed_token": ".authentication.tokens.signing",
        "unmatched_topics": ".rule_warnings",
        "unusable_reason": ".authentication.failures",
        "unused_rules": ".rule_warnings",
        "wide_settings": ".wide_access",
        "without_topics": ".names_lost_by_rules",
    },
)
