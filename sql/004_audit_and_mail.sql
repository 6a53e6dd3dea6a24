-- Who changed what, and whether the mail with a temporary password went out.

CREATE TABLE audit_log (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at            timestamptz NOT NULL DEFAULT now(),
  -- Kept as it was: the user may be gone when somebody reads it.
  actor_kind    text NOT NULL CHECK (actor_kind IN ('admin', 'setup', 'command_line')),
  actor_user_id bigint,
  actor_name    text NOT NULL,
  action        text NOT NULL,
  object_type   text NOT NULL,
  object_id     text NOT NULL,
  before        jsonb,
  after         jsonb,
  request_id    text NOT NULL,
  address       text NOT NULL
);
CREATE INDEX audit_log_object ON audit_log (object_type, object_id, id);
CREATE INDEX audit_log_actor ON audit_log (actor_user_id, id);

CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'audit_log is append-only';
END $$;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE ON audit_log
  FOR EACH ROW EXECUTE FUNCTION audit_log_is_append_only();
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_append_only();

ALTER TABLE admin_credentials
  -- The mail with the temporary password: null when none was ever asked for.
  ADD COLUMN mail_state text CHECK (mail_state IN ('pending', 'sent', 'failed')),
  ADD COLUMN mail_error text,
  ADD COLUMN mail_at    timestamptz;
