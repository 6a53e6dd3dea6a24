-- Expands: a release before this one runs on.
-- When factors were last added or sessions ended: a browser logs in without a password if its last login is later.
ALTER TABLE admin_credentials ADD COLUMN passwordless_after timestamptz NOT NULL DEFAULT now();
