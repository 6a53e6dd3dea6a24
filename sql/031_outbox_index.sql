-- Expands: a release before this one runs on.
-- Entries that died and were resolved, among millions that were delivered.
CREATE INDEX authz_outbox_resolved ON authz_outbox (resolved_at) WHERE dead_at IS NOT NULL;
