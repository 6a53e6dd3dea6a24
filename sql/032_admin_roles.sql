-- Expands: a release before this one runs on.
-- What an administrator may do. Those there are may do everything, and so may those a release before this one appoints.
ALTER TABLE admin_credentials ADD COLUMN roles text[] NOT NULL DEFAULT '{owner}';
-- The plugins of a plugin manager; null for all of them.
ALTER TABLE admin_credentials ADD COLUMN plugins text[];
