"""Lists the topics that its settings name, and shows each tenant only its own topics and the shared ones."""

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from broker_core import ListingRequest, Mode, NamespaceName, TopicListingResult, hookimpl


class TenantFilterSettings(BaseModel):
    """The plugin's own keys in ``[plugins.tenant-filter]``."""

    topics: dict[str, list[str]] = {}  # namespace -> local names that this plugin lists


class TenantFilter:
    @hookimpl
    def broker_core_settings(self) -> type[BaseModel]:
        return TenantFilterSettings

    @hookimpl
    async def broker_core_startup(self, settings: TenantFilterSettings) -> None:
        self.topics = settings.topics

    @hookimpl
    async def broker_core_list_topics(self, namespace: NamespaceName, mode: Mode) -> TopicListingResult:
        names = self.topics.get(str(namespace))
        if names is None or not mode.lists("persistent"):
            return TopicListingResult.pass_through()  # the next plugin, or the catalogue
        return TopicListingResult.success([f"persistent://{namespace}/{name}" for name in names])

    @hookimpl
    async def broker_core_visible(self, request: ListingRequest, topics: pa.LargeStringArray) -> pa.Array:
        visible = pc.match_substring(topics, f"://{request.namespace}/shared.")
        if tenant := request.properties.get("tenant"):  # a claim: it selects only
            visible = pc.or_(visible, pc.match_substring(topics, f"://{request.namespace}/{tenant}."))
        return visible


plugin = TenantFilter()
