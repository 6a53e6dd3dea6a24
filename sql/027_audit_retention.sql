-- Expands: a release before this one runs on.
-- Entries of the audit log are never changed, and are removed by this function alone: not before 90 days, whatever it is asked for.
CREATE OR REPLACE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_setting('plugin_host.audit_retention', true) = 'on' THEN
    IF OLD.at < now() - interval '90 days' THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'audit_log is append-only';
END $$;
CREATE FUNCTION audit_log_remove_old(age interval, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE removed bigint;
BEGIN
  PERFORM set_config('plugin_host.audit_retention', 'on', true);
  DELETE FROM public.audit_log WHERE id IN
    (SELECT id FROM public.audit_log WHERE at < now() - greatest(age, interval '90 days') ORDER BY id LIMIT most);
  GET DIAGNOSTICS removed = ROW_COUNT;
  PERFORM set_config('plugin_host.audit_retention', 'off', true);
  RETURN removed;
END $$;
CREATE INDEX audit_log_age ON audit_log (at);
CREATE INDEX university_imports_age ON university_imports (finished_at);
