-- Expands: a release before this one runs on.
-- What an entry of the audit log says of a person can be erased, and the chain of seals still verifies the rest: an entry's sum is made of
-- the sum of its actor, that of its states, and what stays. Erased parts leave their sum. The salt keeps a sum from being guessed back to
-- a name; it goes with the last part.
ALTER TABLE audit_log ADD COLUMN salt uuid DEFAULT gen_random_uuid();
ALTER TABLE audit_log ADD COLUMN actor_sha256 bytea;
ALTER TABLE audit_log ADD COLUMN states_sha256 bytea;
-- Seals that were made before have one sum for a whole entry.
ALTER TABLE audit_seals ADD COLUMN has_parts boolean NOT NULL DEFAULT false;

-- Erased parts hold nothing: one in which something is written afterwards has another sum.
CREATE FUNCTION audit_actor_sum(a audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN a.actor_sha256 IS NULL
      THEN sha256(convert_to(jsonb_build_array(a.salt, a.actor_name, a.address)::text, 'UTF8'))
    WHEN a.actor_name = '(erased)' AND a.address = '' THEN a.actor_sha256
    ELSE ''::bytea END
$$;

CREATE FUNCTION audit_states_sum(a audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN a.states_sha256 IS NULL
      THEN sha256(convert_to(jsonb_build_array(a.salt, a.object_id, a.before, a.after)::text, 'UTF8'))
    WHEN (a.object_type = 'user' OR a.object_id = '(erased)') AND a.before IS NULL AND a.after IS NULL THEN a.states_sha256
    ELSE ''::bytea END
$$;

CREATE FUNCTION audit_sum_of_parts(previous bytea, from_id bigint, to_id bigint) RETURNS bytea
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
  SELECT sha256(previous || coalesce(string_agg(sha256(convert_to(jsonb_build_array(
      a.id, extract(epoch FROM a.at)::text, a.actor_kind, a.actor_user_id, a.actor_key_id, a.action, a.object_type,
      CASE WHEN a.object_type = 'user' THEN a.object_id END, a.request_id)::text, 'UTF8')
      || public.audit_actor_sum(a) || public.audit_states_sum(a)), ''::bytea ORDER BY a.id), ''::bytea))
  FROM public.audit_log a WHERE a.id BETWEEN from_id AND to_id
$$;

-- As before, with the sum of the parts.
CREATE OR REPLACE FUNCTION audit_seal() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET lock_timeout = '500ms' AS $$
DECLARE
  last record;
  found record;
BEGIN
  -- While it is held no entry is under way: what has a number by then is there.
  LOCK TABLE public.audit_log IN SHARE MODE;
  SELECT coalesce(max(s.last_id), 0) AS last_id, coalesce((array_agg(s.sha256 ORDER BY s.id DESC))[1], ''::bytea) AS sha256
    INTO last FROM public.audit_seals s;
  SELECT min(a.id) AS low, max(a.id) AS high, count(*) AS entries INTO found FROM public.audit_log a WHERE a.id > last.last_id;
  IF found.entries = 0 THEN
    RETURN 0;
  END IF;
  INSERT INTO public.audit_seals (first_id, last_id, entries, has_parts, sha256)
    VALUES (found.low, found.high, found.entries, true, public.audit_sum_of_parts(last.sha256, found.low, found.high));
  RETURN found.entries;
END $$;

-- As before. A seal without parts cannot be verified once something of its entries was erased.
CREATE OR REPLACE FUNCTION audit_broken_seals() RETURNS TABLE (seal bigint, first_id bigint, last_id bigint, sealed_at timestamptz)
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
  SELECT s.id, s.first_id, s.last_id, s.sealed_at
  FROM (SELECT *, lag(x.sha256, 1, ''::bytea) OVER (ORDER BY x.id) AS previous FROM public.audit_seals x) s
  WHERE s.sha256 <> CASE WHEN s.has_parts THEN public.audit_sum_of_parts(s.previous, s.first_id, s.last_id)
                         ELSE public.audit_sum(s.previous, s.first_id, s.last_id) END
    AND NOT (s.sealed_at < now() - interval '90 days'
      AND s.entries > (SELECT count(*) FROM public.audit_log a WHERE a.id BETWEEN s.first_id AND s.last_id))
    AND (s.has_parts OR NOT EXISTS (SELECT FROM public.audit_log a WHERE a.id BETWEEN s.first_id AND s.last_id
      AND coalesce(a.actor_sha256, a.states_sha256) IS NOT NULL))
  ORDER BY s.id
$$;

CREATE OR REPLACE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_setting('plugin_host.audit_retention', true) = 'on' THEN
    IF OLD.at < now() - interval '90 days' THEN
      RETURN OLD;
    END IF;
  END IF;
  -- An erasure leaves the sums as they were, and everything else.
  IF TG_OP = 'UPDATE' AND current_setting('plugin_host.audit_erasure', true) = 'on' THEN
    IF (NEW.id, NEW.at, NEW.actor_kind, NEW.actor_user_id, NEW.actor_key_id, NEW.action, NEW.object_type, NEW.request_id)
        IS NOT DISTINCT FROM
       (OLD.id, OLD.at, OLD.actor_kind, OLD.actor_user_id, OLD.actor_key_id, OLD.action, OLD.object_type, OLD.request_id)
      AND public.audit_actor_sum(NEW) = public.audit_actor_sum(OLD)
      AND public.audit_states_sum(NEW) = public.audit_states_sum(OLD) THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'audit_log is append-only';
END $$;

-- Erases a user's name and address where they acted, and what entries about them and their relationships say. Either id may be null.
-- Who acted when, on what kind of object, stays, with the number of the user alone. Returns how many entries.
CREATE FUNCTION audit_erase_person(erased_user bigint, erased_external_id text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE erased bigint;
BEGIN
  PERFORM set_config('plugin_host.audit_erasure', 'on', true);
  WITH found AS (
    SELECT a.id,
      coalesce(a.actor_user_id = erased_user, false) AS acted,
      coalesce(a.object_type = 'user' AND a.object_id = erased_user::text, false)
        OR coalesce(a.object_type = 'relationship' AND EXISTS (
          SELECT FROM unnest(ARRAY[a.object_id, a.before::text, a.after::text]) AS said
          WHERE position('@user:' || erased_external_id || '"' IN said || '"') > 0
            OR position('"subject_id":"' || erased_external_id || '"' IN said) > 0), false)
        OR coalesce(a.object_type = 'file' AND a.before ->> 'user_id' = erased_user::text, false) AS about
    FROM public.audit_log a
    WHERE a.actor_user_id = erased_user OR a.object_type IN ('user', 'relationship', 'file')
  )
  UPDATE public.audit_log a SET
    actor_sha256 = CASE WHEN f.acted THEN public.audit_actor_sum(a) ELSE a.actor_sha256 END,
    actor_name = CASE WHEN f.acted THEN '(erased)' ELSE a.actor_name END,
    address = CASE WHEN f.acted THEN '' ELSE a.address END,
    states_sha256 = CASE WHEN f.about THEN public.audit_states_sum(a) ELSE a.states_sha256 END,
    object_id = CASE WHEN f.about AND a.object_type <> 'user' THEN '(erased)' ELSE a.object_id END,
    before = CASE WHEN f.about THEN NULL ELSE a.before END,
    after = CASE WHEN f.about THEN NULL ELSE a.after END,
    salt = CASE WHEN (f.acted OR a.actor_sha256 IS NOT NULL) AND (f.about OR a.states_sha256 IS NOT NULL) THEN NULL ELSE a.salt END
  FROM found f WHERE f.id = a.id AND (f.acted AND a.actor_sha256 IS NULL OR f.about AND a.states_sha256 IS NULL);
  GET DIAGNOSTICS erased = ROW_COUNT;
  PERFORM set_config('plugin_host.audit_erasure', 'off', true);
  RETURN erased;
END $$;
