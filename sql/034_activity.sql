-- Expands: a release before this one runs on.
-- Executions counted over time, in steps of 60 and of 900 seconds; the row without a plugin counts all of them. `taken` has one
-- number for each bucket of src/records/activity.ts: how many took that long, the wait for a slot included.
CREATE TABLE activity (
  plugin_id text NOT NULL,
  step      integer NOT NULL,
  at        timestamptz NOT NULL,
  requests  bigint NOT NULL,
  failed    bigint NOT NULL,
  run_ms    double precision NOT NULL,
  taken     integer[] NOT NULL,
  PRIMARY KEY (plugin_id, step, at)
);
CREATE INDEX activity_age ON activity (step, at);
