"""Lists the topics that its settings name, and shows each tenant only its own topics and the shared ones."""

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, field_validator

from broker_core import Listing, ListingRequest, Mode, TopicListingResult, hookimpl


class Settings(BaseModel):
    """The plugin's own keys in ``[plugins.tenant-filter]``."""

    topics: dict[str, list[str]] = {}  # namespace -> local names that this plugin lists

    @field_validator("topics")
    @classmethod
    def _have_valid_names(cls, topics: dict[str, list[str]]) -> dict[str, list[str]]:
        listings(topics)  # wrong names are wrong settings: `broker-core check` finds them before a start
        return topics


def listings(topics: dict[str, list[str]]) -> dict[tuple[str, Mode], Listing]:
    """The listings of each namespace by the modes that have persistent topics."""
    return {
        (namespace, mode): Listing.from_names(
            namespace, mode, [f"persistent://{namespace}/{n}" for n in names]
        )
        for namespace, names in topics.items()
        for mode in (Mode.PERSISTENT, Mode.ALL)
    }


class TenantFilter:
    @hookimpl
    def broker_core_settings(self) -> type[BaseModel]:
        return Settings

    @hookimpl
    async def broker_core_startup(self, settings: Settings) -> None:
        self.listings = listings(settings.topics)

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        listing = self.listings.get((str(request.namespace), request.mode))
        if listing is None:
            return TopicListingResult.pass_through()  # the next plugin, or the catalogue
        return TopicListingResult.success(listing)

    @hookimpl
    async def broker_core_visible(self, request: ListingRequest, topics: pa.LargeStringArray) -> pa.Array:
        visible = pc.match_substring(topics, f"://{request.namespace}/shared.")
        if tenant := request.properties.get("tenant"):  # a claim: it selects only
            visible = pc.or_(visible, pc.match_substring(topics, f"://{request.namespace}/{tenant}."))
        return visible


plugin = TenantFilter()
