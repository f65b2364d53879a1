-- Versions of namespaces that are new are locked in the order of the names too.
--
-- Readable from schema 7.

-- As in 0002, but for the first statement: rows that were not there yet could not be locked. Of two statements that wrote
-- the first topics of the same namespaces, each then had one row that the other one waited for.
CREATE OR REPLACE FUNCTION broker_core.raise_versions(names text[], deltas bigint[], logged bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept broker_core.retention;
    too_many boolean;
BEGIN
    SELECT * INTO STRICT kept FROM broker_core.retention;
    too_many := (SELECT sum(n) FROM unnest(logged) n) > kept.rows OR kept.versions = 0;
    INSERT INTO broker_core.namespace_versions AS v (namespace, version, topics, transaction, changed)
        SELECT DISTINCT touched.name COLLATE "C", 1, 0, pg_current_xact_id(), transaction_timestamp()
        FROM unnest(names || string_to_array(btrim(current_setting('broker_core.touched', true)), ' ')) touched (name)
        ORDER BY 1
        ON CONFLICT (namespace) DO UPDATE SET topics = v.topics WHERE false;  -- locks the row, and leaves it
    INSERT INTO broker_core.namespace_versions AS v
        (namespace, version, topics, log_floor, log_rows, transaction, changed)
    SELECT given.name, 1, given.delta, too_many::int, CASE WHEN too_many THEN 0 ELSE given.rows END,
        pg_current_xact_id(), transaction_timestamp()
    FROM unnest(names, deltas, logged) given (name, delta, rows)
    ORDER BY given.name COLLATE "C"
    ON CONFLICT (namespace) DO UPDATE SET
        version = v.version + CASE
            WHEN v.transaction = excluded.transaction AND v.changed = excluded.changed THEN 0 ELSE 1
        END,
        topics = v.topics + excluded.topics,
        loaded = true,
        log_rows = v.log_rows + excluded.log_rows,
        transaction = excluded.transaction,
        changed = excluded.changed;
    IF too_many THEN
        UPDATE broker_core.namespace_versions SET log_floor = version, log_rows = 0 WHERE namespace = ANY (names);
        DELETE FROM broker_core.changes WHERE namespace = ANY (names);
        DELETE FROM broker_core.tombstones t USING broker_core.namespace_versions v
            WHERE v.namespace = ANY (names) AND t.namespace = v.namespace AND t.deleted_version < v.version;
    ELSE
        -- By age too, for those who feed by SQL alone: when the oldest change has been too old for an eighth of it.
        -- There is room then for what this statement logs afterwards.
        PERFORM broker_core.trim_changes(
            v.namespace, v.version, kept.versions, kept.rows - given.rows, kept.age)
        FROM unnest(names, logged) given (name, rows)
        JOIN broker_core.namespace_versions v ON v.namespace = given.name
        WHERE (v.log_rows > kept.rows OR v.version - v.log_floor > kept.versions + kept.versions / 8
                OR (SELECT c.changed FROM broker_core.changes c
                    WHERE c.namespace = v.namespace AND c.version > v.log_floor  -- not past those that just went
                    ORDER BY c.version, c.seq LIMIT 1) < transaction_timestamp() - kept.age * 1.125);
    END IF;
    -- One hint for each namespace; equal ones of a transaction are sent once.
    PERFORM pg_notify('broker_core_topics', jsonb_build_object('namespace', v.namespace, 'version', v.version)::text)
    FROM broker_core.namespace_versions v WHERE v.namespace = ANY (names);
END $$;
