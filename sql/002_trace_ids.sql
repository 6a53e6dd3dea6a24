-- Trace id of the caller's W3C trace context, empty when it sent none.
ALTER TABLE plugin_executions ADD COLUMN trace_id text NOT NULL DEFAULT '';
