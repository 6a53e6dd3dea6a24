-- Plugins on origins of their own (`plugins.origin`): a session there belongs to one plugin, and to the session it was made from.

ALTER TABLE sessions
  ADD COLUMN plugin_id text REFERENCES plugins (id) ON DELETE CASCADE,
  ADD COLUMN parent_id bigint REFERENCES sessions (id) ON DELETE CASCADE;
CREATE INDEX sessions_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;

-- A session on its way to the origin of a plugin: a code that is used once, by the browser that asked for it.
CREATE TABLE plugin_logins (
  code_sha256  bytea PRIMARY KEY,
  session_id   bigint NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  plugin_id    text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  state_sha256 bytea NOT NULL,
  expires_at   timestamptz NOT NULL
);
