-- The index of trigrams in parts, so that a large load makes a part of its own rows, after them: to fill an index of
-- trigrams row by row takes two to four times as long as to make it, whatever the list of pending entries may hold.
-- Measured for 1,000,000 names of 20 to 40 characters, PostgreSQL 15, in seconds of processor: made 2.3 to 5.2, filled 4.5
-- to 14.4 with 4 MB of the list, no less with 32 MB or 2 GB.
--
-- Each row says which part it is in; a question is asked of all parts at once:
--   trigram_part BETWEEN 0 AND 0 OR trigram_part BETWEEN 1 AND 1 ...
-- Readers learn of the parts in the snapshot that they see the rows in. A part that has no index is no wrong answer, only a
-- slow one.
ALTER TABLE broker_core.topics ADD COLUMN trigram_part integer NOT NULL DEFAULT 0;

-- What rows are written one by one goes into the first part, which the index topics_trigrams is of.
CREATE TABLE broker_core.trigram_parts (
    low integer PRIMARY KEY,
    high integer NOT NULL,
    CHECK (0 <= low AND low <= high)
);
INSERT INTO broker_core.trigram_parts VALUES (0, 0);

-- The rows of a part that nobody knows of would be missing from answers.
CREATE FUNCTION broker_core.check_trigram_parts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'trigram_part of broker_core.topics is given once, to rows of loads' USING ERRCODE = 'check_violation';
    END IF;
    IF EXISTS (
        SELECT FROM (SELECT min(r.trigram_part) low, max(r.trigram_part) high FROM new_rows r) given
        WHERE given.low < 0 OR given.high > (SELECT max(p.high) FROM broker_core.trigram_parts p)
    ) THEN
        RAISE EXCEPTION 'a trigram_part is none: see broker_core.begin_trigram_part()' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER check_trigram_parts AFTER INSERT ON broker_core.topics REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION broker_core.check_trigram_parts();
CREATE TRIGGER keep_trigram_parts BEFORE UPDATE OF trigram_part ON broker_core.topics
    FOR EACH STATEMENT EXECUTE FUNCTION broker_core.check_trigram_parts();

-- An index of some parts; false where the extensions are missing. Its columns have the collation "POSIX", another name for
-- the order "C": a condition that says so is for this index alone.
CREATE FUNCTION broker_core.make_trigram_index(name text, low integer, high integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    trgm text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
        WHERE e.extname = 'pg_trgm');
    gin text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
        WHERE e.extname = 'btree_gin');
BEGIN
    IF trgm IS NULL OR gin IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format(
        'CREATE INDEX %I ON broker_core.topics USING gin '
        '(namespace COLLATE "POSIX" %s.text_ops, matched COLLATE "POSIX" %s.gin_trgm_ops) '
        'WHERE trigram_part BETWEEN %s AND %s', name, gin, trgm, low, high);
    RETURN true;
END $$;

-- One index of all rows in place of those that there are; false where the extensions are missing. Writers wait meanwhile,
-- readers at its end: PostgreSQL lets go of an index when nobody reads the table.
CREATE FUNCTION broker_core.merge_trigram_parts() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    highest integer;
    each record;
BEGIN
    LOCK TABLE broker_core.topics IN SHARE ROW EXCLUSIVE MODE;
    SELECT max(p.high) INTO STRICT highest FROM broker_core.trigram_parts p;
    IF NOT broker_core.make_trigram_index('topics_trigrams_merged', 0, highest) THEN
        RETURN false;
    END IF;
    FOR each IN
        SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = 'broker_core.topics'::regclass AND c.relname ~ '^topics_trigrams(_[0-9]+)?$'
    LOOP
        EXECUTE format('DROP INDEX broker_core.%I', each.relname);
    END LOOP;
    ALTER INDEX broker_core.topics_trigrams_merged RENAME TO topics_trigrams;
    DELETE FROM broker_core.trigram_parts;
    INSERT INTO broker_core.trigram_parts VALUES (0, highest);
    RETURN true;
END $$;

-- Before so many names are written by one transaction: the number of a part of their own, which no index knows yet, or 0
-- where it is not worth one. Fewer than 40,000 names, or than a sixteenth of all, are written one by one. Other writers
-- wait from here on, whatever their namespace, until the transaction ends; readers do not.
CREATE FUNCTION broker_core.begin_trigram_part(names bigint) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part integer;
BEGIN
    IF names < 40000
        OR current_setting('transaction_isolation') <> 'read committed'  -- else the lock's wait would show nothing
        OR names * 16 < (SELECT sum(v.topics) FROM broker_core.namespace_versions v)
        OR NOT EXISTS (
            SELECT FROM pg_index i WHERE i.indexrelid = to_regclass('broker_core.topics_trigrams')
                AND i.indisvalid AND i.indpred IS NOT NULL)
    THEN
        RETURN 0;
    END IF;
    LOCK TABLE broker_core.topics IN SHARE ROW EXCLUSIVE MODE;
    IF (SELECT count(*) FROM broker_core.trigram_parts) >= 32 THEN  -- merging them has failed again and again
        RETURN 0;
    END IF;
    SELECT max(p.high) + 1 INTO STRICT part FROM broker_core.trigram_parts p;
    INSERT INTO broker_core.trigram_parts VALUES (part, part);
    RETURN part;
END $$;

-- After the names, in the same transaction: the index of their part. Of more than eight parts one is made instead; where
-- somebody reads the table for so long that the old ones cannot go, that is left to the next load.
CREATE FUNCTION broker_core.end_trigram_part(part integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    patience text := current_setting('lock_timeout');
BEGIN
    IF (SELECT count(*) FROM broker_core.trigram_parts) > 8 THEN
        BEGIN
            PERFORM set_config('lock_timeout', '500ms', true);
            PERFORM broker_core.merge_trigram_parts();
            PERFORM set_config('lock_timeout', patience, true);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            NULL;
        END;
    END IF;
    PERFORM broker_core.make_trigram_index('topics_trigrams_' || part, part, part);
END $$;

-- Indexes are not let go of any more before a first load. What a killed one left out is made here.
SELECT broker_core.make_postponed_indexes();
DROP FUNCTION broker_core.make_postponed_indexes();
DROP FUNCTION broker_core.postpone_indexes(bigint);
DROP TABLE broker_core.postponed_indexes;

REVOKE ALL ON FUNCTION
    broker_core.check_trigram_parts(),
    broker_core.make_trigram_index(text, integer, integer),
    broker_core.merge_trigram_parts(),
    broker_core.begin_trigram_part(bigint),
    broker_core.end_trigram_part(integer)
    FROM PUBLIC;

-- As in 0006, with what is new and without what is gone.
CREATE OR REPLACE FUNCTION broker_core.grant_roles() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regrole('broker_core_reader') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA broker_core TO broker_core_reader;
        GRANT SELECT ON broker_core.catalog, broker_core.migrations, broker_core.retention, broker_core.namespaces,
            broker_core.namespace_versions, broker_core.topics, broker_core.changes, broker_core.tombstones,
            broker_core.trigram_parts, broker_core.mirrors
            TO broker_core_reader;
    END IF;
    IF to_regrole('broker_core_feeder') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA broker_core TO broker_core_feeder;
        GRANT SELECT ON broker_core.catalog, broker_core.migrations, broker_core.retention, broker_core.namespaces,
            broker_core.namespace_versions, broker_core.changes, broker_core.tombstones, broker_core.mending,
            broker_core.trigram_parts, broker_core.mirrors
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
