-- Expands: a release before this one runs on.
-- What its author signed of a module: the signature, and the hash of the bytes it is over. Null: not signed, or uploaded before.
ALTER TABLE plugin_versions ADD COLUMN signature jsonb;
ALTER TABLE uninstalled_versions ADD COLUMN signature jsonb;
