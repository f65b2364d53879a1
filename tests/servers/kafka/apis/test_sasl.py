from __future__ import annotations

import pytest

from broker_core.servers.kafka.apis.sasl import SASL_ROWS
from broker_core.servers.kafka.requests.call import HandlerRow
from broker_core.wire.kafka import ErrorCode
from tests.support.kafka_calls import answer_of, call_of


@pytest.mark.parametrize("row", SASL_ROWS)
def test_who_need_not_authenticate_is_told_so(row: HandlerRow) -> None:
    for version in range(row.api.versions.first, row.api.versions.last + 1):
        fields = answer_of(row, call_of(row.api, version))
        assert fields["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
