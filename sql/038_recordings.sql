-- Expands: a release before this one runs on.
-- Executions of a trigger can be recorded, with what they were given and what their host calls got, to run them again.
-- A recording goes with its record.
ALTER TABLE plugin_trigger_settings ADD COLUMN record boolean NOT NULL DEFAULT false;
ALTER TABLE execution_records ADD COLUMN recording bytea;
