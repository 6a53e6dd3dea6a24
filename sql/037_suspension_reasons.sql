-- Expands: a release before this one runs on.
-- Why something is suspended, as a code and its details, which pages word in their language. Null: a release without
-- reasons has written the row. `cause` says the reason as a sentence in any case.
ALTER TABLE plugin_quarantine ADD COLUMN reason text;
ALTER TABLE plugin_quarantine ADD COLUMN details jsonb NOT NULL DEFAULT '{}';
