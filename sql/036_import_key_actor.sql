-- Expands: a release before this one runs on.
-- What the import key (admin.api_key) brought in.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_actor_kind_check;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_actor_kind_check
  CHECK (actor_kind IN ('admin', 'admin_key', 'import_key', 'user', 'anonymous', 'setup', 'command_line'));
