-- The indexes that listings read; which question uses which one is shown by EXPLAIN in the tests.
--
-- Measured with 200,000 names of 60 bytes in four namespaces, PostgreSQL 15, as ratios within one run.

-- Ranges and equality of the matched name, by this index alone, without the table; and in its order, page by page.
-- For 3,000 names of a prefix: 1. With domain and name by INCLUDE, which gives no order for pages: 1.3 to 1.8, of the same
-- size. With (namespace, matched) alone, reading the table: 3.1 to 3.4, of half the size.
CREATE INDEX topics_matched ON broker_core.topics (namespace, matched, domain, local_name);

-- Properties, each together with its namespace: a pair that a million topics of other namespaces have costs nothing.
-- It is used by a condition of this very form:
--   properties <> '{}'
--   AND broker_core.properties_in(namespace, properties) @> broker_core.properties_in('tenant/ns', '{"key": "value"}')
-- By jsonb_set, which is immutable, and so becomes a part of the index's expression; with jsonb_build_object, which is
-- not, each row that is written would be a call.
-- For the topics of one pair, and of two: 1 and 1. As an array of texts 'namespace/key=value': 0.7 to 1 and 6.6, built in
-- 1.8 times the time, and the column beside it. Without the namespace, where a pair is in four namespaces alike: 0.2 to
-- 1.2 for one pair, and more with each namespace that has it.
-- Its list of pending entries stays as large as by default: with 256 kB of it the index of trigrams takes 4.5 times as
-- long to fill, without it 19 times. tidy_topics() and autovacuum empty it.
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
