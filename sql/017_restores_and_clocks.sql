-- Where the graph store stands in the history of the outbox, and waits that survive a step of the clock.

-- Tells an entry from another one of the same number in a database that was restored from a backup.
ALTER TABLE authz_outbox ADD COLUMN mark uuid NOT NULL DEFAULT gen_random_uuid();

-- What the store was last told: the number of the write and its newest entry, as the store holds them beside the epoch.
ALTER TABLE authz_stream ADD COLUMN tick bigint NOT NULL DEFAULT 0;
ALTER TABLE authz_stream ADD COLUMN position text;
ALTER TABLE authz_stream ADD COLUMN paused_since timestamptz;

-- What is left of a wait. One that is longer than such a wait ever is was begun before the clock was set back: it is over.
CREATE FUNCTION wait_left(until timestamptz, longest interval) RETURNS interval LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN until > clock_timestamp() AND until <= clock_timestamp() + longest THEN until - clock_timestamp() ELSE interval '0' END
$$;
