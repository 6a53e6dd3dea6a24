-- Expands: a release before this one runs on.
-- Executions counted over time by trigger, in steps of 60, 900 and 3600 seconds; the row without a plugin counts all of them. `taken`
-- has one number for each bucket of src/records/activity.ts: how many took that long, the wait for a slot included. A release before
-- this one counts in `activity`, which has no triggers and no hours.
CREATE TABLE trigger_activity (
  plugin_id    text NOT NULL,
  trigger_name text NOT NULL,
  step         integer NOT NULL,
  at           timestamptz NOT NULL,
  requests     bigint NOT NULL,
  failed       bigint NOT NULL,
  run_ms       double precision NOT NULL,
  taken        integer[] NOT NULL,
  PRIMARY KEY (plugin_id, step, at, trigger_name)
);
CREATE INDEX trigger_activity_age ON trigger_activity (step, at);
INSERT INTO trigger_activity SELECT plugin_id, '', step, at, requests, failed, run_ms, taken FROM activity;
