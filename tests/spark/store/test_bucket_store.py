"""A bucket without conditional puts is refused with the reason. Options and errors are plain."""

from __future__ import annotations

from typing import Any

import obstore
import pytest
from obstore.exceptions import GenericError, NotSupportedError
from obstore.store import MemoryStore

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.bucket_store import BucketStore, bucket_client, obstore_message


def test_a_bucket_that_ignores_the_condition_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    put = obstore.put

    def careless(client: Any, path: str, data: Any, **_: Any) -> Any:
        return put(client, path, data)

    monkeypatch.setattr(obstore, "put", careless)
    store = BucketStore("s3://careless", MemoryStore())
    with pytest.raises(StoreFailed, match="ignores the condition of a put"):
        store.put_new("segments/a", b"")
    assert list(store.list("temporary")) == []


def test_a_bucket_without_conditional_puts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> Any:
        raise NotSupportedError("conditional put is off")

    monkeypatch.setattr(obstore, "put", none)
    with pytest.raises(StoreFailed, match=r"no conditional put.*conditional put is off"):
        BucketStore("s3://old", MemoryStore()).check()


def test_a_server_that_is_not_there_is_said() -> None:
    options = {
        "endpoint": "http://127.0.0.1:1",
        "region": "us-east-1",
        "allow_http": "true",
        "timeout": "2s",
        "access_key_id": "id",
        "secret_access_key": "not shown",
    }
    client = bucket_client("s3://bucket/x", options)
    client = client.__class__.from_url(  # without its retries of three minutes
        "s3://bucket/x",
        config={
            "aws_endpoint": "http://127.0.0.1:1",
            "aws_region": "us-east-1",
            "aws_skip_signature": "true",
        },
        client_options={"allow_http": "true"},
        retry_config={"max_retries": 0},
    )
    store = BucketStore("s3://bucket/x", client)
    for use in (
        lambda: store.put_new("segments/a", b""),
        lambda: store.get("segments/a", 1),
        lambda: list(store.list("segments")),
        lambda: store.delete("segments/a"),
    ):
        with pytest.raises(StoreFailed, match="s3://bucket/x: cannot") as caught:
            use()
        assert "not shown" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_endpoint_without_tls_needs_an_option(s3_options: dict[str, str]) -> None:
    del s3_options["allow_http"]
    store = BucketStore("s3://generations/x", bucket_client("s3://generations/x", s3_options))
    with pytest.raises(StoreFailed, match=r"allow_http=true permits an http:// endpoint$"):
        list(store.list("segments"))


def test_a_cloud_without_credentials_is_told_so() -> None:
    # As recorded of obstore where neither the environment nor an instance has any.
    line = (
        "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 3.2s, after 10 retries, "
        "max_retries: 10, retry_timeout: 180s - HTTP error: error sending request"
    )
    assert obstore_message(GenericError(f"{line}\n\nDebug source:\nGeneric {{")) == (
        f"{line}: the environment has no credentials, and no instance of a cloud gives any"
    )


@pytest.mark.parametrize("options", [{"nonsense": "1"}, {"aws_nonsense": "1"}])
def test_an_option_that_is_none_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(StoreFailed, match="s3://bucket"):
        bucket_client("s3://bucket", options)


def test_memory_is_one_store_by_its_name() -> None:
    assert bucket_client("memory://a name", {}) is bucket_client("memory://a name", {})
    assert bucket_client("memory://a name", {}) is not bucket_client("memory://another", {})
