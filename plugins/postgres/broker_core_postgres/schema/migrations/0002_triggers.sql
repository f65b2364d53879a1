-- Every change of topics raises the version of its namespace, by one for each transaction, whoever makes it and how.
--
-- Triggers on rows only propose: which version a row will be of, as far as the statement can see, and which id a topic
-- gets. They take no lock and run with the rights of who writes. Triggers on statements decide, with the rights of the
-- schema's owner: they raise the versions (in the order of the names, so that two statements never wait for each other
-- crosswise), put right what was proposed or given wrong, write the log and the tombstones, and notify. A version row is
-- locked after the rows of topics, and until the transaction ends, so that versions are in the order of commits.
--
-- A row that is given with its versions and its id is not touched by a trigger on rows at all: that is for bulk loads,
-- which lock the version first (begin_change) and know both. What they claim is checked like anything else.

-- The id of a topic whose names are created together: the same for all of its partitions. RFC 9562, version 8.
CREATE FUNCTION broker_core.shared_topic_id(salt text, domain text, matched text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN overlay(overlay(
    left(encode(sha256(convert_to(salt || '/' || domain || '/' || matched, 'UTF8')), 'hex'), 32)
    PLACING '8' FROM 13) PLACING 'a' FROM 17)::uuid;

-- What belongs to a version for shared_topic_id: an id of another creation never comes again.
CREATE FUNCTION broker_core.salt_of(namespace text, version bigint) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT c.id || '/' || salt_of.namespace || '/' || salt_of.version FROM broker_core.catalog c;
END;

-- The version of a change of this namespace in this transaction. It is remembered until the transaction ends in
-- settings of the session: whoever sets them to something else gains nothing, since statements are checked.
-- Remembered are some kB of the namespaces too: an INSERT ... ON CONFLICT DO UPDATE runs the triggers of both, the first
-- of which has to lock the versions of all, for one order.
CREATE FUNCTION broker_core.propose_version(of_namespace text) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    proposed bigint;
BEGIN
    IF current_setting('broker_core.proposed_for', true) = of_namespace THEN
        RETURN current_setting('broker_core.proposed');
    END IF;
    SELECT v.version + CASE
            WHEN v.transaction = pg_current_xact_id() AND v.changed = transaction_timestamp() THEN 0 ELSE 1
        END
        INTO proposed FROM broker_core.namespace_versions v WHERE v.namespace = of_namespace;
    proposed := coalesce(proposed, 1);
    PERFORM set_config('broker_core.proposed_for', of_namespace, true),
        set_config('broker_core.proposed', proposed::text, true),
        set_config('broker_core.salt', broker_core.salt_of(of_namespace, proposed), true),
        CASE WHEN strpos(touched.names, ' ' || of_namespace || ' ') = 0 AND length(touched.names) < 4000
            THEN set_config('broker_core.touched', touched.names || of_namespace || ' ', true)
        END
    FROM coalesce(nullif(current_setting('broker_core.touched', true), ''), ' ') touched (names);
    RETURN proposed;
END $$;

CREATE FUNCTION broker_core.propose_insert() RETURNS trigger
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF current_setting('broker_core.proposed_for', true) IS DISTINCT FROM NEW.namespace THEN
        PERFORM broker_core.propose_version(NEW.namespace);
    END IF;
    NEW.created_version := current_setting('broker_core.proposed');
    NEW.changed_version := NEW.created_version;
    IF NEW.topic_id IS NULL THEN
        IF strpos(NEW.local_name, '-partition-') = 0 THEN
            NEW.topic_id := gen_random_uuid();
        ELSE
            NEW.topic_id := broker_core.shared_topic_id(
                current_setting('broker_core.salt'), NEW.domain, broker_core.matched_of(NEW.local_name));
        END IF;
    END IF;
    RETURN NEW;
END $$;

-- A topic's id and the version that it was created with are its own: an update that gives others changes neither. A row
-- that gets another name is another topic.
CREATE FUNCTION broker_core.propose_update() RETURNS trigger
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF pg_trigger_depth() > 1 AND EXISTS (SELECT FROM broker_core.mending WHERE transaction = pg_current_xact_id()) THEN
        RETURN NEW;
    END IF;
    IF (NEW.namespace, NEW.domain, NEW.local_name) IS NOT DISTINCT FROM (OLD.namespace, OLD.domain, OLD.local_name) THEN
        NEW.topic_id := OLD.topic_id;
        NEW.created_version := OLD.created_version;
        NEW.changed_version := OLD.changed_version;
        IF NEW.properties IS DISTINCT FROM OLD.properties THEN
            NEW.changed_version := broker_core.propose_version(NEW.namespace);
        END IF;
        RETURN NEW;
    END IF;
    NEW.created_version := broker_core.propose_version(NEW.namespace);
    NEW.changed_version := NEW.created_version;
    IF (NEW.namespace, NEW.domain, broker_core.matched_of(NEW.local_name))
        IS DISTINCT FROM (OLD.namespace, OLD.domain, OLD.matched)
    THEN
        NEW.topic_id := broker_core.shared_topic_id(
            current_setting('broker_core.salt'), NEW.domain, broker_core.matched_of(NEW.local_name));
    ELSE
        NEW.topic_id := OLD.topic_id;
    END IF;
    RETURN NEW;
END $$;

-- Raise the versions of these namespaces, once for the transaction: `deltas` are by how many names each grows, `logged`
-- how many changes each has to log. Namespaces that have more than the log may hold get a gap instead.
CREATE FUNCTION broker_core.raise_versions(names text[], deltas bigint[], logged bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept broker_core.retention;
    too_many boolean;
BEGIN
    SELECT * INTO STRICT kept FROM broker_core.retention;
    too_many := (SELECT sum(n) FROM unnest(logged) n) > kept.rows OR kept.versions = 0;
    PERFORM FROM broker_core.namespace_versions v
        WHERE v.namespace = ANY (names || string_to_array(btrim(current_setting('broker_core.touched', true)), ' '))
        ORDER BY v.namespace FOR UPDATE;
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

-- Let go of the oldest changes of a namespace: down to seven eighths of the rows, so that it is not done every time.
-- Tombstones go with the changes that made them.
CREATE FUNCTION broker_core.trim_changes(
    of_namespace text, now_at bigint, versions bigint, most_rows bigint, age interval) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cut bigint;
    gone bigint;
BEGIN
    SELECT c.version INTO cut FROM broker_core.changes c WHERE c.namespace = of_namespace
        ORDER BY c.version DESC OFFSET most_rows * 7 / 8 LIMIT 1;
    cut := greatest(least(coalesce(cut, 0), now_at - 1), now_at - versions, (
        SELECT max(c.version) FROM broker_core.changes c
        WHERE c.namespace = of_namespace AND c.changed < transaction_timestamp() - age));
    DELETE FROM broker_core.changes c WHERE c.namespace = of_namespace AND c.version <= cut;
    GET DIAGNOSTICS gone = ROW_COUNT;
    DELETE FROM broker_core.tombstones t WHERE t.namespace = of_namespace AND t.deleted_version <= cut;
    UPDATE broker_core.namespace_versions v
        SET log_floor = greatest(v.log_floor, cut), log_rows = greatest(v.log_rows - gone, 0)
        WHERE v.namespace = of_namespace;
    RETURN gone;
END $$;

-- The ids of partitions and of the plain name of a topic are one: that of the name that was there first.
-- And the versions are those that the transaction raised to.
CREATE FUNCTION broker_core.mend_topics(
    domains text[], names text[], in_namespaces text[], ids uuid[], created bigint[], changed bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO broker_core.mending VALUES (pg_current_xact_id());
    UPDATE broker_core.topics t
        SET topic_id = coalesce(given.id, t.topic_id), created_version = coalesce(given.created, t.created_version),
            changed_version = coalesce(given.changed, t.changed_version)
        FROM unnest(in_namespaces, domains, names, ids, created, changed)
            given (namespace, domain, local_name, id, created, changed)
        WHERE t.namespace = given.namespace AND t.domain = given.domain AND t.local_name = given.local_name;
    DELETE FROM broker_core.mending WHERE transaction = pg_current_xact_id();
END $$;

-- Whether changes of these namespaces go into the log: not where this transaction left a gap.
CREATE FUNCTION broker_core.is_logged(names text[]) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT EXISTS (
        SELECT FROM broker_core.namespace_versions v WHERE v.namespace = ANY (names) AND v.log_floor < v.version);
END;

-- A million rows pass here at once. So they are looked at as few times as can be, and sets of them are compared; each
-- statement is planned for the rows that there are (`total` makes the plan depend on a parameter).
CREATE FUNCTION broker_core.after_insert() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan SET enable_nestloop = on AS $$
DECLARE
    names text[];
    counts bigint[];
    lowest bigint[];
    highest bigint[];
    total bigint;
    partitions bigint;
    grown boolean;
    wrong boolean;
BEGIN
    SELECT array_agg(g.namespace), array_agg(g.n), array_agg(g.low), array_agg(g.high), sum(g.n), sum(g.partitions)
        INTO names, counts, lowest, highest, total, partitions
        FROM (
            SELECT r.namespace, count(*) n, count(r.partition) partitions,
                min(least(r.created_version, r.changed_version)) low,
                max(greatest(r.created_version, r.changed_version)) high
            FROM new_rows r GROUP BY r.namespace
        ) g;
    IF names IS NULL THEN
        RETURN NULL;
    END IF;
    IF total > 1000 THEN
        -- There are no statistics of these rows: sets of them are hashed, never looked up one by one.
        PERFORM set_config('enable_nestloop', 'off', true);
    END IF;
    PERFORM broker_core.raise_versions(names, counts, counts);
    SELECT bool_or(v.topics > given.n), bool_or(given.low <> v.version OR given.high <> v.version)
        INTO grown, wrong
        FROM unnest(names, counts, lowest, highest) given (namespace, n, low, high)
        JOIN broker_core.namespace_versions v ON v.namespace = given.namespace;
    IF wrong THEN
        PERFORM broker_core.mend_topics(
                array_agg(r.domain), array_agg(r.local_name), array_agg(r.namespace), NULL,
                array_agg(v.version), array_agg(v.version))
            FROM new_rows r JOIN broker_core.namespace_versions v ON v.namespace = r.namespace
            WHERE (r.created_version <> v.version OR r.changed_version <> v.version) AND total > 0;
    END IF;
    -- Names of one topic: with others that were there before, or with each other where there are partitions.
    IF grown OR (partitions > 0 AND EXISTS (
        SELECT FROM new_rows r WHERE total > 0 GROUP BY r.namespace, r.domain, r.matched
        HAVING min(uuid_hash_extended(r.topic_id, 0)) <> max(uuid_hash_extended(r.topic_id, 0))
    )) THEN
        PERFORM broker_core.mend_topics(
                array_agg(w.domain), array_agg(w.local_name), array_agg(w.namespace), array_agg(w.id), NULL, NULL)
            FROM (
                SELECT t.domain, t.local_name, t.namespace, t.topic_id, first_value(t.topic_id) OVER (
                    PARTITION BY t.namespace, t.domain, t.matched
                    ORDER BY n.namespace IS NOT NULL, t.created_version, t.partition NULLS FIRST) id
                FROM broker_core.topics t
                LEFT JOIN new_rows n
                    ON n.namespace = t.namespace AND n.domain = t.domain AND n.local_name = t.local_name
                WHERE (t.namespace, t.domain, t.matched) IN (
                    SELECT r.namespace, r.domain, r.matched FROM new_rows r WHERE total > 0)
            ) w WHERE w.id <> w.topic_id HAVING count(*) > 0;
    END IF;
    IF broker_core.is_logged(names) THEN
        INSERT INTO broker_core.changes
            (namespace, version, operation, domain, local_name, topic_id, properties_after)
            SELECT r.namespace, v.version, 'create', r.domain, r.local_name, t.topic_id, r.properties
            FROM new_rows r
            JOIN broker_core.namespace_versions v ON v.namespace = r.namespace AND v.log_floor < v.version
            JOIN broker_core.topics t
                ON t.namespace = r.namespace AND t.domain = r.domain AND t.local_name = r.local_name
            WHERE total > 0;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION broker_core.after_delete() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan SET enable_nestloop = on AS $$
DECLARE
    names text[];
    counts bigint[];
    deltas bigint[];
    total bigint;
BEGIN
    SELECT array_agg(g.namespace), array_agg(g.n), array_agg(-g.n), sum(g.n) INTO names, counts, deltas, total
        FROM (SELECT r.namespace, count(*) n FROM old_rows r GROUP BY r.namespace) g;
    IF names IS NULL THEN
        RETURN NULL;
    END IF;
    IF total > 1000 THEN
        -- There are no statistics of these rows: sets of them are hashed, never looked up one by one.
        PERFORM set_config('enable_nestloop', 'off', true);
    END IF;
    PERFORM broker_core.raise_versions(names, deltas, counts);
    IF broker_core.is_logged(names) THEN
        INSERT INTO broker_core.changes
            (namespace, version, operation, domain, local_name, topic_id, properties_before)
            SELECT r.namespace, v.version, 'delete', r.domain, r.local_name, r.topic_id, r.properties
            FROM old_rows r
            JOIN broker_core.namespace_versions v ON v.namespace = r.namespace AND v.log_floor < v.version
            WHERE total > 0;
    END IF;
    INSERT INTO broker_core.tombstones (namespace, domain, local_name, topic_id, created_version, deleted_version)
        SELECT r.namespace, r.domain, r.local_name, r.topic_id, r.created_version, v.version
        FROM old_rows r JOIN broker_core.namespace_versions v ON v.namespace = r.namespace
        WHERE total > 0;
    RETURN NULL;
END $$;

-- Old and new rows of an update are paired by their names: a name that only the old ones have was deleted, one that
-- only the new ones have was created, in whatever namespace.
CREATE FUNCTION broker_core.after_update() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan SET enable_nestloop = on AS $$
DECLARE
    names text[];
    counts bigint[];
    deltas bigint[];
    total bigint;
    renamed boolean;
BEGIN
    IF EXISTS (SELECT FROM broker_core.mending WHERE transaction = pg_current_xact_id()) THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(g.namespace), array_agg(g.n), array_agg(g.delta), sum(g.n), bool_or(g.renamed)
        INTO names, counts, deltas, total, renamed
        FROM (
            SELECT p.namespace, count(*) n, count(p.new_id) - count(p.old_id) delta,
                bool_or(p.new_id IS NULL OR p.old_id IS NULL) renamed
            FROM (
                SELECT coalesce(n.namespace, o.namespace) namespace, n.topic_id new_id, o.topic_id old_id
                FROM old_rows o FULL JOIN new_rows n
                    ON n.namespace = o.namespace AND n.domain = o.domain AND n.local_name = o.local_name
                WHERE n.properties IS DISTINCT FROM o.properties
                    OR n.created_version IS DISTINCT FROM o.created_version
                    OR n.topic_id IS DISTINCT FROM o.topic_id
            ) p GROUP BY p.namespace
        ) g;
    IF names IS NULL THEN
        RETURN NULL;
    END IF;
    IF total > 1000 THEN
        -- There are no statistics of these rows: sets of them are hashed, never looked up one by one.
        PERFORM set_config('enable_nestloop', 'off', true);
    END IF;
    PERFORM broker_core.raise_versions(names, deltas, counts);
    PERFORM broker_core.mend_topics(
            array_agg(w.domain), array_agg(w.local_name), array_agg(w.namespace), NULL,
            array_agg(w.created), array_agg(w.version))
        FROM (
            SELECT n.domain, n.local_name, n.namespace, v.version,
                CASE WHEN o.topic_id = n.topic_id THEN o.created_version ELSE v.version END created
            FROM new_rows n
            JOIN broker_core.namespace_versions v ON v.namespace = n.namespace
            LEFT JOIN old_rows o
                ON n.namespace = o.namespace AND n.domain = o.domain AND n.local_name = o.local_name
            WHERE (n.properties IS DISTINCT FROM o.properties OR n.created_version IS DISTINCT FROM o.created_version
                    OR n.topic_id IS DISTINCT FROM o.topic_id)
                AND (n.changed_version <> v.version OR n.created_version
                    <> CASE WHEN o.topic_id = n.topic_id THEN o.created_version ELSE v.version END)
                AND total > 0
        ) w HAVING count(*) > 0;
    IF renamed THEN
        PERFORM broker_core.mend_topics(
                array_agg(w.domain), array_agg(w.local_name), array_agg(w.namespace), array_agg(w.id), NULL, NULL)
            FROM (
                SELECT t.domain, t.local_name, t.namespace, t.topic_id, first_value(t.topic_id) OVER (
                    PARTITION BY t.namespace, t.domain, t.matched
                    ORDER BY n.namespace IS NOT NULL, t.created_version, t.partition NULLS FIRST) id
                FROM broker_core.topics t
                LEFT JOIN (
                    SELECT r.namespace, r.domain, r.local_name FROM new_rows r
                    LEFT JOIN old_rows o
                        ON o.namespace = r.namespace AND o.domain = r.domain AND o.local_name = r.local_name
                    WHERE o.namespace IS NULL
                ) n ON n.namespace = t.namespace AND n.domain = t.domain AND n.local_name = t.local_name
                WHERE (t.namespace, t.domain, t.matched) IN (
                    SELECT r.namespace, r.domain, r.matched FROM new_rows r WHERE total > 0)
            ) w WHERE w.id <> w.topic_id HAVING count(*) > 0;
        INSERT INTO broker_core.tombstones (namespace, domain, local_name, topic_id, created_version, deleted_version)
            SELECT o.namespace, o.domain, o.local_name, o.topic_id, o.created_version, v.version
            FROM old_rows o
            JOIN broker_core.namespace_versions v ON v.namespace = o.namespace
            LEFT JOIN new_rows n
                ON n.namespace = o.namespace AND n.domain = o.domain AND n.local_name = o.local_name
            WHERE n.namespace IS NULL AND total > 0;
    END IF;
    IF NOT broker_core.is_logged(names) THEN
        RETURN NULL;
    END IF;
    INSERT INTO broker_core.changes
        (namespace, version, operation, domain, local_name, topic_id, properties_before, properties_after)
        SELECT v.namespace, v.version,
            CASE WHEN o.namespace IS NULL THEN 'create' WHEN n.namespace IS NULL THEN 'delete' ELSE 'update' END,
            coalesce(n.domain, o.domain), coalesce(n.local_name, o.local_name),
            coalesce(t.topic_id, n.topic_id, o.topic_id), o.properties, n.properties
        FROM old_rows o
        FULL JOIN new_rows n
            ON n.namespace = o.namespace AND n.domain = o.domain AND n.local_name = o.local_name
        JOIN broker_core.namespace_versions v
            ON v.namespace = coalesce(n.namespace, o.namespace) AND v.log_floor < v.version
        LEFT JOIN broker_core.topics t
            ON t.namespace = n.namespace AND t.domain = n.domain AND t.local_name = n.local_name
        WHERE (n.properties IS DISTINCT FROM o.properties OR n.created_version IS DISTINCT FROM o.created_version
                OR n.topic_id IS DISTINCT FROM o.topic_id)
            AND total > 0
        ORDER BY n.namespace IS NULL DESC;  -- deletions first: a name may have moved within the statement
    RETURN NULL;
END $$;

-- TRUNCATE removes the rows of all transactions, also of those that an older snapshot does not see: they would go without
-- a version and without a trace. At READ COMMITTED what is counted here is seen behind the lock of the statement.
CREATE FUNCTION broker_core.before_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names text[];
    counts bigint[];
    deltas bigint[];
BEGIN
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'TRUNCATE of broker_core.topics needs a transaction at READ COMMITTED, this one is at %',
                upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'It would remove rows that this transaction cannot see: use DELETE, or BEGIN ISOLATION LEVEL READ COMMITTED.';
    END IF;
    SELECT array_agg(g.namespace), array_agg(g.n), array_agg(-g.n) INTO names, counts, deltas
        FROM (SELECT t.namespace, count(*) n FROM broker_core.topics t GROUP BY t.namespace) g;
    IF names IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM broker_core.raise_versions(names, deltas, counts);
    INSERT INTO broker_core.changes (namespace, version, operation, domain, local_name, topic_id, properties_before)
        SELECT t.namespace, v.version, 'delete', t.domain, t.local_name, t.topic_id, t.properties
        FROM broker_core.topics t
        JOIN broker_core.namespace_versions v ON v.namespace = t.namespace AND v.log_floor < v.version;
    INSERT INTO broker_core.tombstones (namespace, domain, local_name, topic_id, created_version, deleted_version)
        SELECT t.namespace, t.domain, t.local_name, t.topic_id, t.created_version, v.version
        FROM broker_core.topics t JOIN broker_core.namespace_versions v ON v.namespace = t.namespace;
    RETURN NULL;
END $$;

CREATE TRIGGER propose_insert BEFORE INSERT ON broker_core.topics FOR EACH ROW
    WHEN (NEW.created_version IS NULL OR NEW.changed_version IS NULL OR NEW.topic_id IS NULL)
    EXECUTE FUNCTION broker_core.propose_insert();
CREATE TRIGGER propose_update BEFORE UPDATE ON broker_core.topics FOR EACH ROW
    EXECUTE FUNCTION broker_core.propose_update();
CREATE TRIGGER after_insert AFTER INSERT ON broker_core.topics REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION broker_core.after_insert();
CREATE TRIGGER after_update AFTER UPDATE ON broker_core.topics REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION broker_core.after_update();
CREATE TRIGGER after_delete AFTER DELETE ON broker_core.topics REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION broker_core.after_delete();
CREATE TRIGGER before_truncate BEFORE TRUNCATE ON broker_core.topics
    FOR EACH STATEMENT EXECUTE FUNCTION broker_core.before_truncate();
