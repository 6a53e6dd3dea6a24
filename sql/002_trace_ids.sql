-- Trace id of the caller's W3C trace context, empty when it sent none.
ALTER TABLE plugin_executions ADD COLUMN trace_id text NOT NULL DEFAULT '';
CREATE INDEX plugin_executions_request ON plugin_executions (request_id);
CREATE INDEX plugin_executions_trace ON plugin_executions (trace_id) WHERE trace_id <> '';
