-- Key-value store, atomically: one round trip each, correct under READ COMMITTED. Every statement of a volatile function
-- sees what was committed before that statement began, and a statement that waited for a row decides by the row as it is then.

-- Writes a value if the key is absent (p_expected null), or if its value equals p_expected. What has expired is absent.
-- Not written: `present` is the value that stood in the way, null for an absent key. That path writes nothing and locks nothing.
CREATE FUNCTION plugin_kv_update(
  p_plugin_id text, p_key text, p_expected bytea, p_value bytea, p_ttl_seconds int,
  OUT written boolean, OUT present bytea
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_expires_at timestamptz := CASE WHEN p_ttl_seconds = 0 THEN NULL ELSE now() + make_interval(secs => p_ttl_seconds) END;
BEGIN
  LOOP
    written := false;
    SELECT value INTO present FROM plugin_kv
    WHERE plugin_id = p_plugin_id AND key = p_key AND (expires_at IS NULL OR expires_at > now());
    IF p_expected IS NULL THEN
      IF FOUND THEN RETURN; END IF;
      INSERT INTO plugin_kv AS kv (plugin_id, key, value, expires_at) VALUES (p_plugin_id, p_key, p_value, v_expires_at)
      ON CONFLICT (plugin_id, key) DO UPDATE SET value = EXCLUDED.value, expires_at = EXCLUDED.expires_at
      WHERE kv.expires_at <= now();
    ELSE
      IF NOT FOUND OR present <> p_expected THEN RETURN; END IF;
      UPDATE plugin_kv SET value = p_value, expires_at = v_expires_at
      WHERE plugin_id = p_plugin_id AND key = p_key AND value = p_expected AND (expires_at IS NULL OR expires_at > now());
    END IF;
    IF FOUND THEN
      written := true;
      present := NULL;
      RETURN;
    END IF;
    -- Another transaction changed the key between the two statements: its change is visible to the next pass.
  END LOOP;
END $$;

-- Adds to a value that is the decimal text of an int64; an absent key counts as 0. p_ttl_seconds 0 keeps the time to live.
-- `total` is null when the value is no such text or the sum leaves int64: then `present` is the beginning of the value.
CREATE FUNCTION plugin_kv_increment(
  p_plugin_id text, p_key text, p_delta bigint, p_ttl_seconds int,
  OUT total text, OUT present bytea
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_expires_at timestamptz := CASE WHEN p_ttl_seconds = 0 THEN NULL ELSE now() + make_interval(secs => p_ttl_seconds) END;
BEGIN
  INSERT INTO plugin_kv AS kv (plugin_id, key, value, expires_at)
  VALUES (p_plugin_id, p_key, convert_to(p_delta::text, 'UTF8'), v_expires_at)
  ON CONFLICT (plugin_id, key) DO UPDATE SET
    value = CASE WHEN kv.expires_at <= now() THEN EXCLUDED.value
      ELSE convert_to((encode(kv.value, 'escape')::numeric + p_delta)::text, 'UTF8') END,
    expires_at = CASE WHEN kv.expires_at <= now() OR p_ttl_seconds > 0 THEN EXCLUDED.expires_at ELSE kv.expires_at END
  -- CASE alone fixes the order: a long value is not read, and what is no number is not cast.
  WHERE CASE
    WHEN kv.expires_at <= now() THEN true
    WHEN octet_length(kv.value) > 20 THEN false
    WHEN encode(kv.value, 'escape') !~ '^-?[0-9]{1,19}$' THEN false
    ELSE encode(kv.value, 'escape')::numeric BETWEEN -9223372036854775808 AND 9223372036854775807
      AND encode(kv.value, 'escape')::numeric + p_delta BETWEEN -9223372036854775808 AND 9223372036854775807
  END
  RETURNING convert_from(kv.value, 'UTF8') INTO total;
  -- The row that was refused is locked by the statement above: this is the very value.
  IF NOT FOUND THEN
    SELECT substring(value FOR 21) INTO present FROM plugin_kv WHERE plugin_id = p_plugin_id AND key = p_key;
  END IF;
END $$;
