-- One execution is looked up by the ids its caller knows.
CREATE INDEX plugin_executions_request ON plugin_executions (request_id);
CREATE INDEX plugin_executions_trace ON plugin_executions (trace_id) WHERE trace_id <> '';
