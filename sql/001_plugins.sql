-- Plugins, their uploaded versions, access settings, key-value store, execution records and suspensions.

CREATE TABLE plugins (
  id                   text PRIMARY KEY,
  enabled              boolean NOT NULL DEFAULT true,
  installed_version_id bigint,
  frontend_origins     text[] NOT NULL DEFAULT '{}',
  created_at           timestamptz NOT NULL DEFAULT now(),
  updated_at           timestamptz NOT NULL DEFAULT now()
);

-- One row per upload. `config` and `secrets` belong to the version, so that a rollback brings its own back.
CREATE TABLE plugin_versions (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  plugin_id      text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  version        text NOT NULL,
  wasm_key       text NOT NULL UNIQUE,
  sha256         text NOT NULL,
  size           bigint NOT NULL,
  manifest       jsonb NOT NULL,
  findings       jsonb NOT NULL,
  permissions    text[] NOT NULL,
  runnable       jsonb NOT NULL,
  config         jsonb,
  secrets        bytea,
  uploaded_at    timestamptz NOT NULL DEFAULT now(),
  installed_at   timestamptz
);
CREATE INDEX plugin_versions_plugin ON plugin_versions (plugin_id, id DESC);

ALTER TABLE plugins ADD CONSTRAINT plugins_installed_version
  FOREIGN KEY (installed_version_id) REFERENCES plugin_versions (id) ON DELETE SET NULL;

CREATE TABLE plugin_trigger_settings (
  plugin_id          text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  trigger_name       text NOT NULL,
  enabled            boolean NOT NULL DEFAULT true,
  allow_user_session boolean NOT NULL DEFAULT false,
  allow_service_key  boolean NOT NULL DEFAULT false,
  policy_expression  text NOT NULL DEFAULT '',
  frontend_origins   text[],
  updated_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (plugin_id, trigger_name)
);

CREATE TABLE plugin_kv (
  plugin_id  text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  key        text COLLATE "C" NOT NULL,
  value      bytea NOT NULL,
  expires_at timestamptz,
  PRIMARY KEY (plugin_id, key)
);
CREATE INDEX plugin_kv_expiry ON plugin_kv (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE plugin_executions (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  request_id    text NOT NULL,
  plugin_id     text NOT NULL,
  version       text NOT NULL,
  trigger_name  text NOT NULL,
  principal     text NOT NULL,
  outcome       text NOT NULL,
  status        integer NOT NULL,
  started_at    timestamptz NOT NULL,
  queue_wait_ms real NOT NULL,
  run_ms        real NOT NULL,
  host_calls    integer NOT NULL,
  peak_pages    integer NOT NULL,
  failure       text NOT NULL,
  log           jsonb NOT NULL
);
CREATE INDEX plugin_executions_plugin ON plugin_executions (plugin_id, id DESC);
CREATE INDEX plugin_executions_age ON plugin_executions (started_at);

-- `trigger_name` is empty when the whole plugin is suspended.
CREATE TABLE plugin_quarantine (
  plugin_id    text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  trigger_name text NOT NULL,
  since        timestamptz NOT NULL,
  until        timestamptz,
  level        integer NOT NULL,
  cause        text NOT NULL,
  PRIMARY KEY (plugin_id, trigger_name)
);
