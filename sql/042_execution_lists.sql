-- Expands: a release before this one runs on.
-- Executions of all plugins are listed too, the newest first, and those that failed among many that did not.
CREATE INDEX execution_records_newest ON execution_records (id DESC);
CREATE INDEX execution_records_failed ON execution_records (id DESC) WHERE outcome NOT IN ('ok', 'refused');
CREATE INDEX execution_records_plugin_failed ON execution_records (plugin_id, id DESC) WHERE outcome NOT IN ('ok', 'refused');
CREATE INDEX execution_records_principal ON execution_records (principal, id DESC);
-- Deliveries that were given up are counted each time an administrator looks at the overview.
CREATE INDEX event_deliveries_dead ON event_deliveries (subscription_id) WHERE state = 'dead';
