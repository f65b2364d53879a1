-- When each mirror (`sync`, `verify --fix`) last ended well: its part of the database was then what its source said, all
-- of it. That is not told by the versions, which stay where nothing has changed.

CREATE TABLE broker_core.mirrors (
    scope text COLLATE "C" PRIMARY KEY,     -- which part: the options --tenant and --namespace, or 'everything'
    source text NOT NULL,                   -- whose word it is: the address of a cluster, or the file of a catalogue
    succeeded timestamptz NOT NULL
);

-- A mirror of everything is about the parts of all others too: of an old scope nobody waits for another run then.
CREATE FUNCTION broker_core.mirror_succeeded(of_scope text, from_source text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    DELETE FROM broker_core.mirrors m WHERE of_scope = 'everything' AND m.scope <> of_scope;
    INSERT INTO broker_core.mirrors AS m (scope, source, succeeded) VALUES (of_scope, from_source, now())
        ON CONFLICT (scope) DO UPDATE SET source = excluded.source, succeeded = excluded.succeeded;
END;

-- A scope that nobody mirrors any more: whether there was such a one.
CREATE FUNCTION broker_core.forget_mirror(of_scope text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH gone AS (DELETE FROM broker_core.mirrors m WHERE m.scope = of_scope RETURNING m.scope)
        SELECT EXISTS (SELECT FROM gone);
END;

REVOKE ALL ON FUNCTION broker_core.mirror_succeeded(text, text), broker_core.forget_mirror(text) FROM PUBLIC;

-- As in 0005, with what is new.
CREATE OR REPLACE FUNCTION broker_core.grant_roles() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regrole('broker_core_reader') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA broker_core TO broker_core_reader;
        GRANT SELECT ON broker_core.catalog, broker_core.migrations, broker_core.retention, broker_core.namespaces,
            broker_core.namespace_versions, broker_core.topics, broker_core.changes, broker_core.tombstones,
            broker_core.postponed_indexes, broker_core.mirrors
            TO broker_core_reader;
    END IF;
    IF to_regrole('broker_core_feeder') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA broker_core TO broker_core_feeder;
        GRANT SELECT ON broker_core.catalog, broker_core.migrations, broker_core.retention, broker_core.namespaces,
            broker_core.namespace_versions, broker_core.changes, broker_core.tombstones, broker_core.mending,
            broker_core.postponed_indexes, broker_core.mirrors
            TO broker_core_feeder;
        GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON broker_core.topics TO broker_core_feeder;
        GRANT EXECUTE ON FUNCTION
            broker_core.begin_change(text), broker_core.declare_namespace(text), broker_core.forget_namespace(text),
            broker_core.prune_changes(interval), broker_core.sort_pending(), broker_core.tidy_topics(),
            broker_core.postpone_indexes(bigint), broker_core.make_postponed_indexes(),
            broker_core.mirror_succeeded(text, text), broker_core.forget_mirror(text)
            TO broker_core_feeder;
    END IF;
END $$;
