-- Expands: a release before this one runs on.
-- Executions of all plugins are listed too, the newest first, and those that failed among many that did not.
CREATE INDEX execution_records_newest ON execution_records (id DESC);
CREATE INDEX execution_records_failed ON execution_records (id DESC) WHERE outcome NOT IN ('ok', 'refused');
