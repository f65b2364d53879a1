-- The bound of properties and configs is that of the catalogue: bytes of JSON, and no more bytes of jsonb alone.
--
-- Readable from schema 7.

-- The bytes (UTF-8) of an object as JSON without white space: its text has a space after each colon and each comma.
CREATE FUNCTION broker_core.json_bytes(properties jsonb) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN properties = '{}' THEN 2
    ELSE octet_length(properties::text)
        - 2 * (SELECT count(*) FROM jsonb_object_keys(properties))::integer + 1
END;

-- As in 0001, but what is larger as jsonb may still fit as JSON: jsonb takes up to two bytes more for a pair, and six more
-- for all. Only such properties are written as text, which takes long. What fits as jsonb alone was always taken, and is.
CREATE OR REPLACE FUNCTION broker_core.are_properties(properties jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN properties = '{}' THEN true
    WHEN jsonb_typeof(properties) <> 'object' THEN false
    WHEN pg_column_size(properties) > 65536 AND broker_core.json_bytes(properties) > 65536 THEN false
    ELSE NOT jsonb_path_exists(properties, 'strict $.* ? (@.type() != "string")')
END;
