-- Expands: a release before this one runs on.
-- What an entry of the audit log says of a person can be erased, and the chain of seals still verifies the rest: an entry's sum is made of
-- the sum of its actor, that of its states, and what stays. Erased parts leave their sum. A salt for each part keeps the sum from being
-- guessed back to a name; it goes with the part.
ALTER TABLE audit_log ADD COLUMN actor_salt uuid DEFAULT gen_random_uuid();
ALTER TABLE audit_log ADD COLUMN states_salt uuid DEFAULT gen_random_uuid();
ALTER TABLE audit_log ADD COLUMN actor_sha256 bytea;
ALTER TABLE audit_log ADD COLUMN states_sha256 bytea;
-- Seals that were made before have one sum for a whole entry.
ALTER TABLE audit_seals ADD COLUMN has_parts boolean NOT NULL DEFAULT false;

-- Erased parts hold nothing: one in which something is written afterwards has another sum.
CREATE FUNCTION audit_actor_sum(a audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN a.actor_sha256 IS NULL
      THEN sha256(convert_to(jsonb_build_array(a.actor_salt, a.actor_name, a.address)::text, 'UTF8'))
    WHEN a.actor_name = '(erased)' AND a.address = '' AND a.actor_salt IS NULL THEN a.actor_sha256
    ELSE ''::bytea END
$$;

CREATE FUNCTION audit_states_sum(a audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN a.states_sha256 IS NULL
      THEN sha256(convert_to(jsonb_build_array(a.states_salt, a.object_id, a.before, a.after)::text, 'UTF8'))
    WHEN (a.object_type = 'user' OR a.object_id = '(erased)') AND a.before IS NULL AND a.after IS NULL AND a.states_salt IS NULL
      THEN a.states_sha256
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
      AND (NEW.object_type <> 'user' OR NEW.object_id = OLD.object_id)
      AND public.audit_actor_sum(NEW) = public.audit_actor_sum(OLD)
      AND public.audit_states_sum(NEW) = public.audit_states_sum(OLD) THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'audit_log is append-only';
END $$;

-- Whether an entry about relationships names one of these persons: alone, among others, or in the filter of a deletion.
CREATE FUNCTION audit_names_person(a audit_log, external_ids text[]) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT FROM unnest(external_ids) AS e (id)
    WHERE right(a.object_id, length('@user:' || e.id)) = '@user:' || e.id
      OR EXISTS (
        SELECT FROM jsonb_array_elements_text(
          coalesce(a.before -> 'relationships', '[]') || coalesce(a.after -> 'relationships', '[]')) AS r (tuple)
        WHERE right(r.tuple, length('@user:' || e.id)) = '@user:' || e.id)
      OR CASE WHEN a.object_id LIKE '{%'
        THEN a.object_id::jsonb @> jsonb_build_object('subject_type', 'user', 'subject_id', e.id) ELSE false END)
$$;

-- Erases a user's name and address where they acted (also where they had not yet logged in), and what entries about them, their files and
-- their relationships say. Either id may be null; external ids the user had before count too. An entry about several relationships loses
-- all of them. Who acted when, on what kind of object, stays, with the number of the user alone. Only for a user who is gone: the role of
-- the service may call it. Returns how many entries.
CREATE FUNCTION audit_erase_person(erased_user bigint, erased_external_id text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  erased bigint;
  external_ids text[];
BEGIN
  IF EXISTS (SELECT FROM public.global_users u WHERE u.id = erased_user OR u.external_id = erased_external_id)
    OR EXISTS (SELECT FROM public.persons p WHERE p.external_id = erased_external_id) THEN
    RAISE EXCEPTION 'the person is still there';
  END IF;
  SELECT array_agg(DISTINCT e.id) INTO external_ids FROM (
    SELECT erased_external_id AS id
    UNION ALL
    SELECT unnest(ARRAY[a.before ->> 'external_id', a.after ->> 'external_id']) FROM public.audit_log a
      WHERE a.object_type = 'user' AND a.object_id = erased_user::text) AS e
    WHERE e.id IS NOT NULL AND NOT EXISTS (SELECT FROM public.global_users u WHERE u.external_id = e.id);
  PERFORM set_config('plugin_host.audit_erasure', 'on', true);
  WITH found AS (
    SELECT a.id,
      a.actor_sha256 IS NULL AND coalesce(a.actor_user_id = erased_user
        OR a.actor_kind = 'anonymous' AND a.object_type = 'user' AND a.object_id = erased_user::text, false) AS acted,
      a.states_sha256 IS NULL AND coalesce(CASE a.object_type
        WHEN 'user' THEN a.object_id = erased_user::text
        WHEN 'file' THEN a.before ->> 'user_id' = erased_user::text
        WHEN 'relationship' THEN external_ids IS NOT NULL AND public.audit_names_person(a, external_ids) END, false) AS about
    FROM public.audit_log a
    WHERE a.actor_user_id = erased_user OR a.object_type IN ('user', 'relationship', 'file')
  )
  UPDATE public.audit_log a SET
    actor_sha256 = CASE WHEN f.acted THEN public.audit_actor_sum(a) ELSE a.actor_sha256 END,
    actor_name = CASE WHEN f.acted THEN '(erased)' ELSE a.actor_name END,
    address = CASE WHEN f.acted THEN '' ELSE a.address END,
    actor_salt = CASE WHEN f.acted THEN NULL ELSE a.actor_salt END,
    states_sha256 = CASE WHEN f.about THEN public.audit_states_sum(a) ELSE a.states_sha256 END,
    object_id = CASE WHEN f.about AND a.object_type <> 'user' THEN '(erased)' ELSE a.object_id END,
    before = CASE WHEN f.about THEN NULL ELSE a.before END,
    after = CASE WHEN f.about THEN NULL ELSE a.after END,
    states_salt = CASE WHEN f.about THEN NULL ELSE a.states_salt END
  FROM found f WHERE f.id = a.id AND (f.acted OR f.about);
  GET DIAGNOSTICS erased = ROW_COUNT;
  PERFORM set_config('plugin_host.audit_erasure', 'off', true);
  RETURN erased;
END $$;
