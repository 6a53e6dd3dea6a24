-- Expands: a release before this one runs on.

-- The recordings that are kept, which are few among the records: they are counted each ten minutes.
CREATE INDEX execution_records_recorded ON execution_records (plugin_id, id DESC) WHERE recording IS NOT NULL;
