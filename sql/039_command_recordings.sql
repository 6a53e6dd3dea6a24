-- Expands: a release before this one runs on.
-- Executions of a command can be recorded, as those of a trigger can.
ALTER TABLE plugin_command_settings ADD COLUMN record boolean NOT NULL DEFAULT false;
