-- The indexes that listings read; which question uses which one is shown by EXPLAIN in the tests.

-- Ranges and equality of the matched name, by this index alone, without the table; and in its order, page by page.
CREATE INDEX topics_matched ON broker_core.topics (namespace, matched, domain, local_name);

-- Properties, each together with its namespace: a pair that a million topics of other namespaces have costs nothing.
-- It is used by a condition of this very form:
--   properties <> '{}'
--   AND broker_core.properties_in(namespace, properties) @> broker_core.properties_in('tenant/ns', '{"key": "value"}')
-- By jsonb_set, which is immutable, and so becomes a part of the index's expression; with jsonb_build_object, which is
-- not, each row that is written would be a call.
CREATE FUNCTION broker_core.properties_in(namespace text, properties jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_set('{}', ARRAY[namespace], properties);

CREATE INDEX topics_properties ON broker_core.topics
    USING gin (broker_core.properties_in(namespace, properties) jsonb_path_ops) WHERE properties <> '{}';

ALTER TABLE broker_core.topics SET (
    -- Index-only scans need pages that are marked as visible to all, and the planner needs counts: both soon.
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);
ALTER TABLE broker_core.topics ALTER COLUMN namespace SET STATISTICS 300;
