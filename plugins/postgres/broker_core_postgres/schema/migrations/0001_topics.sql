-- Topics, the version of each namespace, the change log and the tombstones.
--
-- All names are compared by their bytes (COLLATE "C"): that is the order of the ranges that RE2 gives for a pattern.

-- The id that versions are comparable under. After a copy of the database was restored, renew_catalog_id().
CREATE TABLE broker_core.catalog (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    created timestamptz NOT NULL DEFAULT now()
);
INSERT INTO broker_core.catalog DEFAULT VALUES;

-- How much of the past is kept: of each namespace at most so many versions and so many changed topics, and nothing that
-- is older than `age` (null: for ever). A statement that changes more than `rows` topics leaves a gap in the log.
CREATE TABLE broker_core.retention (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    versions bigint NOT NULL DEFAULT 10000 CHECK (versions >= 0),
    rows bigint NOT NULL DEFAULT 100000 CHECK (rows >= 0),
    age interval DEFAULT interval '7 days' CHECK (age >= interval '0')
);
INSERT INTO broker_core.retention DEFAULT VALUES;

-- One row for each namespace that was ever loaded. Readers use the view `namespaces`, without those that were forgotten:
-- the row of one stays, so that its version never goes back.
CREATE TABLE broker_core.namespace_versions (
    namespace text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    topics bigint NOT NULL,                 -- how many names it lists
    loaded boolean NOT NULL DEFAULT true,
    log_floor bigint NOT NULL DEFAULT 0,    -- the log holds every change of the versions above
    log_rows bigint NOT NULL DEFAULT 0,     -- about how many changes the log holds
    transaction xid8 NOT NULL,              -- the one that raised the version last
    changed timestamptz NOT NULL,           -- when that one began
    CONSTRAINT namespace_is_tenant_and_namespace CHECK (
        namespace ~ '^[-=:.A-Za-z0-9_]+/[-=:.A-Za-z0-9_]+$' AND octet_length(namespace) <= 1024
    )
) WITH (fillfactor = 40);

-- What tells each version that the log leads from (log_floor and all above) from another one with its number, which a
-- copy of the database that was restored may come to.
CREATE TABLE broker_core.stamps (
    namespace text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    stamp uuid NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (namespace, version)
);

CREATE FUNCTION broker_core.stamp_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' OR NEW.version <> OLD.version THEN
        INSERT INTO broker_core.stamps AS s (namespace, version) VALUES (NEW.namespace, NEW.version)
            ON CONFLICT (namespace, version) DO UPDATE SET stamp = excluded.stamp;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.log_floor <> OLD.log_floor THEN
        DELETE FROM broker_core.stamps s WHERE s.namespace = NEW.namespace AND s.version < NEW.log_floor;
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION broker_core.stamp_version() FROM PUBLIC;
CREATE TRIGGER stamp_version AFTER INSERT OR UPDATE OF version, log_floor ON broker_core.namespace_versions
    FOR EACH ROW EXECUTE FUNCTION broker_core.stamp_version();

-- With the owner's rights: whoever may use the schema may ask, as for the versions themselves.
CREATE FUNCTION broker_core.stamp_of(of_namespace text, of_version bigint) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN (SELECT stamp::text FROM broker_core.stamps WHERE namespace = of_namespace AND version = of_version);

CREATE VIEW broker_core.namespaces AS
SELECT namespace, version, topics, loaded, log_floor, log_rows, changed
FROM broker_core.namespace_versions WHERE loaded;

-- The rule of Pulsar's TopicName (and of broker_core.names.partition_index): a name that ends in -partition-N is a
-- partition if N is canonical and fits a Java int, and if a name is left before it.
-- No regular expression: this takes a quarter of its time, for every row that is written.
CREATE FUNCTION broker_core.partition_of(local_name text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN strpos(local_name COLLATE "C", '-partition-') = 0 THEN NULL
    WHEN right(rtrim(local_name, '0123456789'), 12) NOT LIKE '_-partition-' THEN NULL
    WHEN right(local_name, -length(rtrim(local_name, '0123456789'))) = '0' THEN 0
    WHEN right(local_name, -length(rtrim(local_name, '0123456789'))) COLLATE "C" BETWEEN '1' AND ':'
        AND length(local_name) <= length(rtrim(local_name, '0123456789')) + 10
        AND right(local_name, -length(rtrim(local_name, '0123456789')))::bigint <= 2147483647
    THEN right(local_name, -length(rtrim(local_name, '0123456789')))::integer
END;

-- The name of the topic that a name belongs to: without its partition suffix. It is what patterns are matched against.
CREATE FUNCTION broker_core.matched_of(local_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN strpos(local_name COLLATE "C", '-partition-') = 0 THEN local_name
    WHEN broker_core.partition_of(local_name) IS NULL THEN local_name
    ELSE left(rtrim(local_name, '0123456789'), -11)
END;

-- Strings by strings, as properties in Pulsar are, and at most 64 kB of them. STABLE, as pg_column_size is: else it would
-- not become a part of the constraint's expression, but be a call for each row, of ten times the cost.
CREATE FUNCTION broker_core.are_properties(properties jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN properties = '{}' THEN true
    WHEN jsonb_typeof(properties) <> 'object' OR pg_column_size(properties) > 65536 THEN false
    ELSE NOT jsonb_path_exists(properties, 'strict $.* ? (@.type() != "string")')
END;

CREATE TABLE broker_core.topics (
    namespace text COLLATE "C" NOT NULL,
    domain text COLLATE "C" NOT NULL DEFAULT 'persistent',
    local_name text COLLATE "C" NOT NULL,
    matched text COLLATE "C" NOT NULL GENERATED ALWAYS AS (broker_core.matched_of(local_name)) STORED,
    partition integer GENERATED ALWAYS AS (broker_core.partition_of(local_name)) STORED,
    properties jsonb NOT NULL DEFAULT '{}',
    topic_id uuid NOT NULL,
    created_version bigint NOT NULL,
    changed_version bigint NOT NULL,
    PRIMARY KEY (namespace, domain, local_name),
    CONSTRAINT domain_is_persistent_or_non_persistent CHECK (domain IN ('persistent', 'non-persistent')),
    CONSTRAINT local_name_is_not_empty CHECK (local_name <> ''),
    CONSTRAINT local_name_has_no_slash CHECK (strpos(local_name, '/') = 0),
    -- An index of 8 kB pages holds 2,704 bytes a row, and one has the name twice.
    CONSTRAINT names_fit_an_index CHECK (octet_length(namespace) + 2 * octet_length(local_name) <= 2600),
    CONSTRAINT properties_are_an_object_of_strings CHECK (broker_core.are_properties(properties))
);

-- What happened to each name. `seq` is the order within a version, in which a name may have changed more than once.
CREATE TABLE broker_core.changes (
    namespace text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    operation text COLLATE "C" NOT NULL CHECK (operation IN ('create', 'update', 'delete')),
    domain text COLLATE "C" NOT NULL,
    local_name text COLLATE "C" NOT NULL,
    topic_id uuid NOT NULL,
    properties_before jsonb,
    properties_after jsonb,
    changed timestamptz NOT NULL DEFAULT transaction_timestamp(),
    PRIMARY KEY (namespace, version, seq)
);

-- The names that are gone, the ids that they had, and the version they are gone since.
CREATE TABLE broker_core.tombstones (
    namespace text COLLATE "C" NOT NULL,
    domain text COLLATE "C" NOT NULL,
    local_name text COLLATE "C" NOT NULL,
    topic_id uuid NOT NULL,
    created_version bigint NOT NULL,
    deleted_version bigint NOT NULL,
    deleted timestamptz NOT NULL DEFAULT transaction_timestamp()
);
CREATE INDEX tombstones_version ON broker_core.tombstones (namespace, deleted_version);

-- Indexes that the load of a first million topics let go of, and makes again at its end: see postpone_indexes.
CREATE TABLE broker_core.postponed_indexes (
    name text PRIMARY KEY,
    definition text NOT NULL
);

-- Statements of the triggers themselves: see mend_topics.
CREATE TABLE broker_core.mending (transaction xid8 PRIMARY KEY);
