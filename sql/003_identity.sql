-- Who is calling: people, their sessions and tokens, service keys, administrators.

CREATE TABLE global_users (
  id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  external_id      text UNIQUE,
  idp_accounts_id  text UNIQUE,
  display_name     text NOT NULL DEFAULT '',
  primary_channel  text CHECK (primary_channel IN ('TELEGRAM', 'VK')),
  locale           text NOT NULL DEFAULT 'ru' CHECK (locale IN ('ru', 'en')),
  nationality_type text CHECK (nationality_type IN ('domestic', 'foreign')),
  funding_type     text CHECK (funding_type IN ('budget', 'contract')),
  education_form   text CHECK (education_form IN ('full_time', 'part_time', 'remote')),
  created_at       timestamptz NOT NULL DEFAULT now(),
  updated_at       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE admin_credentials (
  global_user_id       bigint PRIMARY KEY REFERENCES global_users (id) ON DELETE CASCADE,
  email                text NOT NULL,
  password_hash        text NOT NULL,
  must_change_password boolean NOT NULL DEFAULT false,
  -- A temporary password is good until then.
  temporary_until      timestamptz,
  created_at           timestamptz NOT NULL DEFAULT now(),
  updated_at           timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX admin_credentials_email ON admin_credentials (lower(email));

-- Failed logins of the last minutes, by account and by address, so that throttling survives a restart.
CREATE TABLE login_failures (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account   text NOT NULL,
  address   text NOT NULL,
  failed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX login_failures_account ON login_failures (account, failed_at);
CREATE INDEX login_failures_address ON login_failures (address, failed_at);

CREATE TABLE sessions (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind           text NOT NULL CHECK (kind IN ('user', 'admin')),
  global_user_id bigint NOT NULL REFERENCES global_users (id) ON DELETE CASCADE,
  secret_sha256  bytea NOT NULL UNIQUE,
  created_at     timestamptz NOT NULL DEFAULT now(),
  last_used_at   timestamptz NOT NULL DEFAULT now(),
  -- Absolute for an admin session; moves on with use for a user session.
  expires_at     timestamptz NOT NULL,
  -- When the password was last given, for the actions that want it recent.
  password_at    timestamptz,
  address        text NOT NULL,
  user_agent     text NOT NULL
);
CREATE INDEX sessions_user ON sessions (global_user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE user_tokens (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  global_user_id bigint NOT NULL REFERENCES global_users (id) ON DELETE CASCADE,
  name           text NOT NULL,
  public         text NOT NULL UNIQUE,
  secret_sha256  bytea NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  expires_at     timestamptz,
  last_used_at   timestamptz
);
CREATE INDEX user_tokens_user ON user_tokens (global_user_id);

CREATE TABLE service_keys (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name              text NOT NULL,
  public            text NOT NULL UNIQUE,
  secret_sha256     bytea NOT NULL,
  -- The secret before the last rotation, good until the overlap ends.
  old_secret_sha256 bytea,
  old_until         timestamptz,
  created_at        timestamptz NOT NULL DEFAULT now(),
  rotated_at        timestamptz,
  expires_at        timestamptz,
  last_used_at      timestamptz
);

-- `trigger_name` empty: all triggers of the plugin.
CREATE TABLE service_key_scopes (
  service_key_id bigint NOT NULL REFERENCES service_keys (id) ON DELETE CASCADE,
  plugin_id      text NOT NULL,
  trigger_name   text NOT NULL,
  PRIMARY KEY (service_key_id, plugin_id, trigger_name)
);
