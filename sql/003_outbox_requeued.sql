-- Expands: a release before this one runs on.

-- Entries that go are looked for here, one by one.
CREATE INDEX authz_outbox_requeued ON authz_outbox (requeue_of) WHERE requeue_of IS NOT NULL;
