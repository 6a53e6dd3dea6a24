-- Which secrets.key the stored secrets are under, and uninstalled versions that are kept for a while.

-- Fingerprint of the key, not the key; null until the first start of this release.
ALTER TABLE installation ADD COLUMN secrets_fingerprint text;

-- Versions of uninstalled plugins, without configuration and secrets. Their files stay until the row goes.
CREATE TABLE uninstalled_versions (
  wasm_key       text PRIMARY KEY,
  plugin_id      text NOT NULL,
  version        text NOT NULL,
  sha256         text NOT NULL,
  size           bigint NOT NULL,
  manifest       jsonb NOT NULL,
  findings       jsonb NOT NULL,
  permissions    text[] NOT NULL,
  runnable       jsonb NOT NULL,
  frontend       jsonb,
  uploaded_at    timestamptz NOT NULL,
  uninstalled_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX uninstalled_versions_age ON uninstalled_versions (uninstalled_at);
