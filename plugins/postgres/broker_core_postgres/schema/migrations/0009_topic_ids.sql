-- Ids of topics as Kafka has them (KIP-516): never reserved, and never a text of base64 that begins with "-", which is so
-- where the first six bits are 62. Ids that are there stay as they are, since another id would be another topic.
--
-- Readable from schema 7.

-- A random id of version 4. In PL/pgSQL, since a draw is repeated where it does not fit: as fast as gen_random_uuid() alone
-- (2.0 and 2.4 microseconds), while an expression that mends the draw takes 4.3.
CREATE FUNCTION broker_core.new_topic_id() RETURNS uuid
LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
DECLARE
    drawn uuid;
BEGIN
    LOOP
        drawn := gen_random_uuid();
        IF drawn < 'f8000000-0000-0000-0000-000000000000' OR drawn >= 'fc000000-0000-0000-0000-000000000000' THEN
            RETURN drawn;
        END IF;
    END LOOP;
END $$;

-- As in 0002, with a first digit that no text with "-" comes of: 114 bits of the hash are left.
CREATE OR REPLACE FUNCTION broker_core.shared_topic_id(salt text, domain text, matched text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN overlay(overlay(overlay(
    left(encode(sha256(convert_to(salt || '/' || domain || '/' || matched, 'UTF8')), 'hex'), 32)
    PLACING '0' FROM 1) PLACING '8' FROM 13) PLACING 'a' FROM 17)::uuid;

-- As in 0002, with ids of new_topic_id.
CREATE OR REPLACE FUNCTION broker_core.propose_insert() RETURNS trigger
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF current_setting('broker_core.proposed_for', true) IS DISTINCT FROM NEW.namespace THEN
        PERFORM broker_core.propose_version(NEW.namespace);
    END IF;
    NEW.created_version := current_setting('broker_core.proposed');
    NEW.changed_version := NEW.created_version;
    IF NEW.topic_id IS NULL THEN
        IF strpos(NEW.local_name, '-partition-') = 0 THEN
            NEW.topic_id := broker_core.new_topic_id();
        ELSE
            NEW.topic_id := broker_core.shared_topic_id(
                current_setting('broker_core.salt'), NEW.domain, broker_core.matched_of(NEW.local_name));
        END IF;
    END IF;
    RETURN NEW;
END $$;

-- Kafka keeps the ids 0 and 1 for itself. A topic that was given one by hand gets an id of its own, without a change in the
-- log: the log begins anew there.
DO $$
DECLARE
    names text[] := (SELECT array_agg(DISTINCT t.namespace ORDER BY t.namespace) FROM broker_core.topics t
        WHERE t.topic_id <= '00000000-0000-0000-0000-000000000001');
BEGIN
    IF names IS NOT NULL THEN
        ALTER TABLE broker_core.topics DISABLE TRIGGER USER;
        UPDATE broker_core.topics t
            SET topic_id = broker_core.shared_topic_id(
                broker_core.salt_of(t.namespace, v.version + 1), t.domain, t.matched)
            FROM broker_core.namespace_versions v
            WHERE v.namespace = t.namespace AND t.topic_id <= '00000000-0000-0000-0000-000000000001';
        ALTER TABLE broker_core.topics ENABLE TRIGGER USER;
        DELETE FROM broker_core.changes c WHERE c.namespace = ANY (names);
        DELETE FROM broker_core.tombstones d WHERE d.namespace = ANY (names);
        UPDATE broker_core.namespace_versions v SET version = v.version + 1, log_floor = v.version + 1, log_rows = 0
            WHERE v.namespace = ANY (names);
    END IF;
END $$;
ALTER TABLE broker_core.topics
    ADD CONSTRAINT topic_id_is_not_reserved CHECK (topic_id > '00000000-0000-0000-0000-000000000001');
