-- What other programs may read and rely on: views with a version in their names. The tables behind them may change with
-- any migration; a view of one version keeps its columns and what they mean, until a version of it that is not made any
-- more is named in the changelog. The batch of broker-core-spark reads these views alone.
--
-- Readable from schema 7.

-- The oldest schema whose readers can read a database that has this migration; null: nobody but those of this schema.
ALTER TABLE broker_core.migrations ADD COLUMN readable_from integer;

-- One row. `pages`: how many blocks the table behind batch_v1_topics has, for ranges of `place`.
CREATE VIEW broker_core.batch_v1_catalog AS
SELECT c.id::text AS catalog_id,
    pg_catalog.pg_relation_size('broker_core.topics'::regclass)
        / pg_catalog.current_setting('block_size')::bigint AS pages
FROM broker_core.catalog c;

-- The namespaces that are loaded. `stamp` tells the version from another one of its number; the changes of all versions
-- above `log_floor` are in batch_v1_changes.
CREATE VIEW broker_core.batch_v1_namespaces AS
SELECT v.namespace, v.version, s.stamp::text AS stamp, v.log_floor
FROM broker_core.namespace_versions v
LEFT JOIN broker_core.stamps s ON s.namespace = v.namespace AND s.version = v.version
WHERE v.loaded;

CREATE VIEW broker_core.batch_v1_stamps AS
SELECT s.namespace, s.version, s.stamp::text AS stamp FROM broker_core.stamps s;

-- One row for each listed name. `place`, block and row, holds within a snapshot: a range of it is read without looking
-- at the rest of the table.
CREATE VIEW broker_core.batch_v1_topics AS
SELECT t.ctid AS place, t.namespace, t.domain, t.local_name, t.properties FROM broker_core.topics t;

CREATE VIEW broker_core.batch_v1_changes AS
SELECT c.namespace, c.version, c.domain, c.local_name FROM broker_core.changes c;

-- As in 0007, with what is new.
CREATE OR REPLACE FUNCTION broker_core.grant_roles() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regrole('broker_core_reader') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA broker_core TO broker_core_reader;
        GRANT SELECT ON broker_core.catalog, broker_core.migrations, broker_core.retention, broker_core.namespaces,
            broker_core.namespace_versions, broker_core.topics, broker_core.changes, broker_core.tombstones,
            broker_core.trigram_parts, broker_core.mirrors, broker_core.batch_v1_catalog,
            broker_core.batch_v1_namespaces, broker_core.batch_v1_stamps, broker_core.batch_v1_topics,
            broker_core.batch_v1_changes
            TO broker_core_reader;
    END IF;
    IF to_regrole('broker_core_feeder') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA broker_core TO broker_core_feeder;
        GRANT SELECT ON broker_core.catalog, broker_core.migrations, broker_core.retention, broker_core.namespaces,
            broker_core.namespace_versions, broker_core.changes, broker_core.tombstones, broker_core.mending,
            broker_core.trigram_parts, broker_core.mirrors, broker_core.batch_v1_catalog,
            broker_core.batch_v1_namespaces, broker_core.batch_v1_stamps, broker_core.batch_v1_topics,
            broker_core.batch_v1_changes
            TO broker_core_feeder;
        GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON broker_core.topics TO broker_core_feeder;
        GRANT EXECUTE ON FUNCTION
            broker_core.begin_change(text), broker_core.declare_namespace(text), broker_core.forget_namespace(text),
            broker_core.prune_changes(interval), broker_core.sort_pending(), broker_core.tidy_topics(),
            broker_core.begin_trigram_part(bigint), broker_core.end_trigram_part(integer),
            broker_core.mirror_succeeded(text, text), broker_core.forget_mirror(text)
            TO broker_core_feeder;
    END IF;
END $$;
