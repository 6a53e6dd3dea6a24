-- Expands: a release before this one runs on.
-- A chain of sums over the audit log: each seal covers the entries since the one before it, and its sum. Who changes an entry, or takes
-- one out, has to make every later seal again, which the role of the service may not. `plugin-host doctor` verifies it.
CREATE TABLE audit_seals (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  first_id  bigint NOT NULL,
  last_id   bigint NOT NULL,
  entries   integer NOT NULL,
  sha256    bytea NOT NULL,
  sealed_at timestamptz NOT NULL DEFAULT now()
);

-- The sum of entries, behind the sum of the seal before them.
CREATE FUNCTION audit_sum(previous bytea, from_id bigint, to_id bigint) RETURNS bytea
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
  SELECT sha256(previous || coalesce(string_agg(sha256(convert_to(jsonb_build_array(
      a.id, extract(epoch FROM a.at)::text, a.actor_kind, a.actor_user_id, a.actor_key_id, a.actor_name, a.action,
      a.object_type, a.object_id, a.before, a.after, a.request_id, a.address)::text, 'UTF8')), ''::bytea ORDER BY a.id), ''::bytea))
  FROM public.audit_log a WHERE a.id BETWEEN from_id AND to_id
$$;

-- Seals what came since the last seal; returns how many entries.
CREATE FUNCTION audit_seal() RETURNS bigint
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
  INSERT INTO public.audit_seals (first_id, last_id, entries, sha256)
    VALUES (found.low, found.high, found.entries, public.audit_sum(last.sha256, found.low, found.high));
  RETURN found.entries;
END $$;

-- Seals that do not fit their entries any more. What retention has removed cannot be verified.
CREATE FUNCTION audit_broken_seals() RETURNS TABLE (seal bigint, first_id bigint, last_id bigint, sealed_at timestamptz)
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
  SELECT s.id, s.first_id, s.last_id, s.sealed_at
  FROM (SELECT *, lag(x.sha256, 1, ''::bytea) OVER (ORDER BY x.id) AS previous FROM public.audit_seals x) s
  WHERE s.sha256 <> public.audit_sum(s.previous, s.first_id, s.last_id)
    AND NOT (s.sealed_at < now() - interval '90 days'
      AND s.entries > (SELECT count(*) FROM public.audit_log a WHERE a.id BETWEEN s.first_id AND s.last_id))
  ORDER BY s.id
$$;
