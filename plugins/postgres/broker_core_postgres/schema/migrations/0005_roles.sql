-- What each role may do. The roles are made by `migrate` where it may make roles; where they are made later by somebody
-- else, the next `migrate` grants.

-- Functions that take part in triggers with the owner's rights are for triggers alone. What is computed (names,
-- properties) everybody may call who may use the schema at all.
REVOKE ALL ON FUNCTION
    broker_core.raise_versions(text[], bigint[], bigint[]),
    broker_core.trim_changes(text, bigint, bigint, bigint, interval),
    broker_core.mend_topics(text[], text[], text[], uuid[], bigint[], bigint[]),
    broker_core.is_logged(text[]),
    broker_core.after_insert(),
    broker_core.after_update(),
    broker_core.after_delete(),
    broker_core.before_truncate(),
    broker_core.begin_change(text),
    broker_core.declare_namespace(text),
    broker_core.forget_namespace(text),
    broker_core.prune_changes(interval),
    broker_core.set_retention(interval, bigint, bigint),
    broker_core.renew_catalog_id(),
    broker_core.sort_pending(),
    broker_core.postpone_indexes(bigint),
    broker_core.make_postponed_indexes(),
    broker_core.tidy_topics()
    FROM PUBLIC;

CREATE FUNCTION broker_core.grant_roles() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regrole('broker_core_reader') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA broker_core TO broker_core_reader;
        GRANT SELECT ON broker_core.catalog, broker_core.migrations, broker_core.retention, broker_core.namespaces,
            broker_core.namespace_versions, broker_core.topics, broker_core.changes, broker_core.tombstones,
            broker_core.postponed_indexes
            TO broker_core_reader;
    END IF;
    IF to_regrole('broker_core_feeder') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA broker_core TO broker_core_feeder;
        GRANT SELECT ON broker_core.catalog, broker_core.migrations, broker_core.retention, broker_core.namespaces,
            broker_core.namespace_versions, broker_core.changes, broker_core.tombstones, broker_core.mending,
            broker_core.postponed_indexes
            TO broker_core_feeder;
        GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON broker_core.topics TO broker_core_feeder;
        GRANT EXECUTE ON FUNCTION
            broker_core.begin_change(text), broker_core.declare_namespace(text), broker_core.forget_namespace(text),
            broker_core.prune_changes(interval), broker_core.sort_pending(), broker_core.tidy_topics(),
            broker_core.postpone_indexes(bigint), broker_core.make_postponed_indexes()
            TO broker_core_feeder;
    END IF;
END $$;
REVOKE ALL ON FUNCTION broker_core.grant_roles() FROM PUBLIC;
