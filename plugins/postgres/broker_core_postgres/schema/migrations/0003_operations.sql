-- What feeders and operators call.

-- Lock the version of a namespace until the transaction ends, before rows of it are written: writers that begin with
-- this wait for each other here, and never crosswise. Returns the version that changes of the transaction will have;
-- without a change nothing is raised. A namespace that was never loaded counts as loaded, and empty, from then on.
CREATE FUNCTION broker_core.begin_change(of_namespace text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    proposed bigint;
BEGIN
    INSERT INTO broker_core.namespace_versions AS v (namespace, version, topics, transaction, changed)
        VALUES (of_namespace, 1, 0, pg_current_xact_id(), transaction_timestamp())
        ON CONFLICT (namespace) DO UPDATE SET
            version = v.version + 1, loaded = true, transaction = excluded.transaction, changed = excluded.changed
            WHERE NOT v.loaded;
    IF FOUND THEN
        PERFORM pg_notify(
            'broker_core_topics', jsonb_build_object('namespace', v.namespace, 'version', v.version)::text)
        FROM broker_core.namespace_versions v WHERE v.namespace = of_namespace;
    END IF;
    SELECT v.version + CASE
            WHEN v.transaction = pg_current_xact_id() AND v.changed = transaction_timestamp() THEN 0 ELSE 1
        END
        INTO STRICT proposed FROM broker_core.namespace_versions v WHERE v.namespace = of_namespace FOR UPDATE;
    PERFORM set_config('broker_core.proposed_for', of_namespace, true),
        set_config('broker_core.proposed', proposed::text, true),
        set_config('broker_core.salt', broker_core.salt_of(of_namespace, proposed), true);
    RETURN proposed;
END $$;

-- The namespace is loaded: without topics it lists nothing from now on, instead of passing on to other listers.
CREATE FUNCTION broker_core.declare_namespace(of_namespace text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT broker_core.begin_change(of_namespace);
    SELECT v.version FROM broker_core.namespace_versions v WHERE v.namespace = of_namespace;
END;

-- Remove a namespace with all of its topics: it counts as never loaded. Its version goes on, should it ever come back.
CREATE FUNCTION broker_core.forget_namespace(of_namespace text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    removed bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM broker_core.namespaces n WHERE n.namespace = of_namespace) THEN
        RETURN 0;
    END IF;
    PERFORM broker_core.begin_change(of_namespace);
    DELETE FROM broker_core.topics t WHERE t.namespace = of_namespace;
    GET DIAGNOSTICS removed = ROW_COUNT;
    IF removed = 0 THEN
        PERFORM broker_core.raise_versions(ARRAY[of_namespace], ARRAY[0], ARRAY[0]);
    END IF;
    UPDATE broker_core.namespace_versions v SET loaded = false WHERE v.namespace = of_namespace;
    RETURN removed;
END $$;

-- Let go of what is older than the retention says, or than `keep`; returns how many changes and tombstones went.
-- Who asks for changes since a version before the floor of a namespace is told to read all of it.
CREATE FUNCTION broker_core.prune_changes(keep interval DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept broker_core.retention;
    found record;
    gone bigint := 0;
    removed bigint;
BEGIN
    SELECT * INTO STRICT kept FROM broker_core.retention;
    keep := coalesce(keep, kept.age);
    FOR found IN
        SELECT v.namespace, v.version, greatest(v.version - kept.versions, old.version) AS cut
        FROM broker_core.namespace_versions v
        LEFT JOIN (
            SELECT c.namespace, max(c.version) AS version FROM broker_core.changes c
            WHERE c.changed < now() - keep GROUP BY c.namespace
        ) old ON old.namespace = v.namespace
        WHERE greatest(v.version - kept.versions, old.version) > v.log_floor
        ORDER BY v.namespace
    LOOP
        DELETE FROM broker_core.changes c WHERE c.namespace = found.namespace AND c.version <= found.cut;
        GET DIAGNOSTICS removed = ROW_COUNT;
        UPDATE broker_core.namespace_versions v
            SET log_floor = greatest(v.log_floor, found.cut), log_rows = greatest(v.log_rows - removed, 0)
            WHERE v.namespace = found.namespace;
        gone := gone + removed;
    END LOOP;
    DELETE FROM broker_core.tombstones t WHERE t.deleted < now() - keep;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN gone + removed;
END $$;

-- How much of the past is kept from now on; what is not given stays. `age` 0: for ever.
CREATE FUNCTION broker_core.set_retention(
    age interval DEFAULT NULL, versions bigint DEFAULT NULL, rows bigint DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    UPDATE broker_core.retention r SET
        age = CASE WHEN set_retention.age = interval '0' THEN NULL ELSE coalesce(set_retention.age, r.age) END,
        versions = coalesce(set_retention.versions, r.versions),
        rows = coalesce(set_retention.rows, r.rows);
END;

-- After a copy of the database was restored: numbers of versions may come again with other topics, so that they must not
-- be compared with those that were seen before.
CREATE FUNCTION broker_core.renew_catalog_id() RETURNS uuid
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    UPDATE broker_core.catalog SET id = gen_random_uuid() RETURNING id;
END;

-- Indexes without a list of what is still to be sorted in. Feeders do not own the table, so that they cannot do this, nor
-- ANALYZE, themselves.
CREATE FUNCTION broker_core.sort_pending() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT gin_clean_pending_list(i.indexrelid)
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
        WHERE i.indrelid = 'broker_core.topics'::regclass AND a.amname = 'gin' AND i.indisvalid;
END;

-- Before so many names are loaded into a database without topics: let go of the index of trigrams. To fill it row by row
-- takes three times as long as to make it of rows that are there. Committed on its own, since the lock would keep readers
-- out: while there are no topics, nobody misses the index. Whoever calls this has the isolation level READ COMMITTED.
-- False where nothing is to be made afterwards: there is no such index, too few names come, or there are topics already.
CREATE FUNCTION broker_core.postpone_indexes(names bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF names < 40000 OR EXISTS (SELECT FROM broker_core.topics) THEN
        RETURN false;
    END IF;
    LOCK TABLE broker_core.topics IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM broker_core.topics) THEN  -- of a writer that the lock has waited for
        RETURN false;
    END IF;
    INSERT INTO broker_core.postponed_indexes
        SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_class c
        WHERE c.oid = to_regclass('broker_core.topics_trigrams')
        ON CONFLICT (name) DO NOTHING;
    DROP INDEX IF EXISTS broker_core.topics_trigrams;
    RETURN EXISTS (SELECT FROM broker_core.postponed_indexes);  -- by a load before that was killed, too
END $$;

-- Make what was postponed: at the end of the transaction that loads, and wherever one did not come to its end. What
-- cannot be made any more, its extension being gone, is no failure: `migrate` makes it when it can be.
CREATE FUNCTION broker_core.make_postponed_indexes() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    each record;
BEGIN
    IF NOT EXISTS (SELECT FROM broker_core.postponed_indexes) THEN
        RETURN;
    END IF;
    LOCK TABLE broker_core.topics IN SHARE MODE;  -- a load that is under way makes it itself
    FOR each IN DELETE FROM broker_core.postponed_indexes RETURNING * LOOP
        IF to_regclass(format('broker_core.%I', each.name)) IS NULL THEN
            BEGIN
                EXECUTE each.definition;
            EXCEPTION WHEN undefined_object OR undefined_function OR invalid_schema_name THEN
                RAISE WARNING 'index %: %', each.name, SQLERRM;
            END;
        END IF;
    END LOOP;
END $$;

-- After a bulk load: indexes with everything in them, and statistics for the planner.
CREATE FUNCTION broker_core.tidy_topics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM broker_core.sort_pending();
    ANALYZE broker_core.topics;
END $$;
