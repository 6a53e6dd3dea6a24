-- Expands: a release before this one runs on.
-- The trace an event was published in, as the header traceparent names it; empty for none.
ALTER TABLE events ADD COLUMN traceparent text NOT NULL DEFAULT '';
