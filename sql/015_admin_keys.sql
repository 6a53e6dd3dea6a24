-- Keys that open the admin API to programs, with the scopes an administrator gave them.

CREATE TABLE admin_keys (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name          text NOT NULL,
  public        text NOT NULL UNIQUE,
  secret_sha256 bytea NOT NULL,
  scopes        text[] NOT NULL,
  -- A key does not outlive the appointment of the administrator who made it.
  made_by       bigint NOT NULL REFERENCES admin_credentials (global_user_id) ON DELETE CASCADE,
  created_at    timestamptz NOT NULL DEFAULT now(),
  expires_at    timestamptz,
  last_used_at  timestamptz
);
CREATE INDEX admin_keys_made_by ON admin_keys (made_by);

-- What a key did, what a user did with tokens and sessions of their own, and logins that failed.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_actor_kind_check;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_actor_kind_check
  CHECK (actor_kind IN ('admin', 'admin_key', 'user', 'anonymous', 'setup', 'command_line'));
ALTER TABLE audit_log ADD COLUMN actor_key_id bigint;
