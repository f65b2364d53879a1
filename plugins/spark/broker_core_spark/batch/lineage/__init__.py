"""Events of a build for a lineage service, by the client of OpenLineage."""
