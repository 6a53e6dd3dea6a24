-- Expands: a release before this one runs on.
-- Records of executions, in parts by time: what is over is dropped with its part, not deleted row by row. A release before this one
-- writes plugin_executions, which goes when its records are over.
CREATE TABLE execution_records (
  id            bigint NOT NULL DEFAULT nextval('plugin_executions_id_seq'),
  request_id    text NOT NULL,
  plugin_id     text NOT NULL,
  version       text NOT NULL,
  trigger_name  text NOT NULL,
  principal     text NOT NULL,
  outcome       text NOT NULL,
  status        integer NOT NULL,
  started_at    timestamptz NOT NULL,
  queue_wait_ms real NOT NULL,
  run_ms        real NOT NULL,
  host_calls    integer NOT NULL,
  peak_pages    integer NOT NULL,
  failure       text NOT NULL,
  log           jsonb NOT NULL,
  trace_id      text NOT NULL DEFAULT '',
  decision      jsonb
) PARTITION BY RANGE (started_at);
CREATE INDEX execution_records_plugin ON execution_records (plugin_id, id DESC);
CREATE INDEX execution_records_age ON execution_records (started_at);
CREATE INDEX execution_records_request ON execution_records (request_id);
CREATE INDEX execution_records_trace ON execution_records (trace_id) WHERE trace_id <> '';
-- What no part is there for yet, and what a host with a wrong clock writes.
CREATE TABLE execution_records_other PARTITION OF execution_records DEFAULT;

CREATE VIEW all_executions AS
  SELECT id, request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at, queue_wait_ms, run_ms,
    host_calls, peak_pages, failure, log, trace_id, decision FROM execution_records
  UNION ALL
  SELECT id, request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at, queue_wait_ms, run_ms,
    host_calls, peak_pages, failure, log, trace_id, decision FROM plugin_executions;

-- Drops parts that are over, and makes those for the next time: of a week each, of a month when records are kept for longer than
-- a quarter. A part is named after its first day and the day behind its last. The serving role owns no table; it may call this.
CREATE FUNCTION execution_records_keep(keep interval) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET lock_timeout = '3s' SET timezone = 'UTC' AS $$
DECLARE
  width interval := CASE WHEN keep > interval '92 days' THEN interval '1 month' ELSE interval '7 days' END;
  part record;
  part_name text;
  begins timestamptz;
  ends timestamptz;
  newest timestamptz;
  dropped integer := 0;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('execution_records_keep')) THEN
    RETURN 0;
  END IF;
  FOR part IN
    SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'public.execution_records'::regclass AND c.relname ~ '_\d{8}_\d{8}$'
  LOOP
    ends := to_date(right(part.name, 8), 'YYYYMMDD');
    IF ends <= now() - keep THEN
      EXECUTE format('DROP TABLE public.%I', part.name);
      dropped := dropped + 1;
    ELSE
      newest := greatest(newest, ends);
    END IF;
  END LOOP;
  begins := greatest(newest, date_trunc('week', now()));
  WHILE begins < now() + width LOOP
    ends := date_trunc('day', begins + width);
    part_name := format('execution_records_%s_%s', to_char(begins, 'YYYYMMDD'), to_char(ends, 'YYYYMMDD'));
    EXECUTE format('CREATE TABLE public.%I (LIKE public.execution_records INCLUDING DEFAULTS)', part_name);
    EXECUTE format(
      'WITH moved AS (DELETE FROM public.execution_records_other WHERE started_at >= %L AND started_at < %L RETURNING *)
       INSERT INTO public.%I SELECT * FROM moved', begins, ends, part_name);
    EXECUTE format('ALTER TABLE public.execution_records ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
      part_name, begins, ends);
    begins := ends;
  END LOOP;
  RETURN dropped;
END $$;
