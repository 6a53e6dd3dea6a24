-- Expands: a release before this one runs on.
-- Passkeys of administrators (WebAuthn). `rp_id` is the host name one was made for, the only one it works on.
CREATE TABLE admin_passkeys (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  global_user_id bigint NOT NULL REFERENCES admin_credentials (global_user_id) ON DELETE CASCADE,
  name           text NOT NULL,
  rp_id          text NOT NULL,
  credential_id  text NOT NULL UNIQUE,
  public_key     bytea NOT NULL,
  sign_count     bigint NOT NULL,
  transports     text[] NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  last_used_at   timestamptz
);
CREATE INDEX admin_passkeys_user ON admin_passkeys (global_user_id);
-- Secrets of authenticator apps (RFC 6238), sealed. A code counts once: `last_step` is the step of the last one.
CREATE TABLE admin_totp (
  global_user_id bigint PRIMARY KEY REFERENCES admin_credentials (global_user_id) ON DELETE CASCADE,
  secret         bytea NOT NULL,
  last_step      bigint NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now()
);
-- Each opens one login.
CREATE TABLE admin_recovery_codes (
  global_user_id bigint NOT NULL REFERENCES admin_credentials (global_user_id) ON DELETE CASCADE,
  code_sha256    bytea NOT NULL,
  PRIMARY KEY (global_user_id, code_sha256)
);
-- What waits for the second half of a login, of a confirmation or of an enrolment. `token_sha256` names it.
CREATE TABLE admin_challenges (
  token_sha256   bytea PRIMARY KEY,
  global_user_id bigint NOT NULL REFERENCES admin_credentials (global_user_id) ON DELETE CASCADE,
  purpose        text NOT NULL,
  challenge      text NOT NULL,
  bound_to       bytea NOT NULL,
  failures       integer NOT NULL DEFAULT 0,
  expires_at     timestamptz NOT NULL
);
