-- Expands: a release before this one runs on.
-- It refuses the secret of before a rotation.
ALTER TABLE admin_keys ADD COLUMN old_secret_sha256 bytea;
ALTER TABLE admin_keys ADD COLUMN old_until timestamptz;
ALTER TABLE admin_keys ADD COLUMN rotated_at timestamptz;
