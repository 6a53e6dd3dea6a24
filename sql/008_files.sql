-- Files handed to plugins (service.md 2.5, 3.2, 4.3): what is known of each, and how much each owner keeps.

-- Names this installation in a store it may share with others.
CREATE TABLE installation (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id  text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', '')
);
INSERT INTO installation DEFAULT VALUES;

CREATE TABLE files (
  -- 128 random bits.
  id           text COLLATE "C" PRIMARY KEY,
  -- The order they were made in.
  number       bigint GENERATED ALWAYS AS IDENTITY,
  plugin_id    text NOT NULL,
  -- Who uploaded it; null: the plugin stored it itself.
  user_id      bigint REFERENCES global_users (id),
  name         text NOT NULL,
  mime_type    text NOT NULL,
  file_type    text NOT NULL CHECK (file_type IN ('photo', 'document', 'audio', 'video', 'voice', 'sticker')),
  size         bigint NOT NULL CHECK (size >= 0),
  state        text NOT NULL CHECK (state IN ('pending', 'ready', 'deleted')),
  store        text NOT NULL CHECK (store IN ('disk', 's3')),
  -- What tells the uploaded object from every other one: on disk its SHA-256, in S3 the name it was taken over under and its ETag.
  digest       text,
  created_at   timestamptz NOT NULL DEFAULT now(),
  completed_at timestamptz,
  -- Of a pending file: when its upload must be complete. Of a ready one: the end of its time to live.
  expires_at   timestamptz,
  -- Deleted while somebody outside still holds an address to upload to: it counts until the address has expired.
  cancelled_at timestamptz,
  deleted_at   timestamptz,
  -- When nothing of it was left in the store.
  removed_at   timestamptz,
  CHECK (state <> 'pending' OR expires_at IS NOT NULL),
  CHECK (state <> 'ready' OR (completed_at IS NOT NULL AND digest IS NOT NULL)),
  CHECK ((state = 'deleted') = (deleted_at IS NOT NULL)),
  CHECK (removed_at IS NULL OR state = 'deleted')
);
CREATE INDEX files_plugin ON files (plugin_id, number DESC) WHERE state <> 'deleted';
CREATE INDEX files_due ON files (expires_at) WHERE state <> 'deleted' AND expires_at IS NOT NULL;
CREATE INDEX files_to_remove ON files (deleted_at) WHERE state = 'deleted' AND removed_at IS NULL;
CREATE INDEX files_removed ON files (removed_at) WHERE removed_at IS NOT NULL;

-- Files that are not deleted, by plugin and owner: user 0 is the plugin itself, -1 all of them together.
CREATE TABLE file_usage (
  plugin_id text NOT NULL,
  user_id   bigint NOT NULL,
  files     bigint NOT NULL,
  pending   bigint NOT NULL,
  bytes     bigint NOT NULL,
  PRIMARY KEY (plugin_id, user_id)
);

-- Keeps file_usage in step whatever changes files. The plugin's row comes first, so that transactions of one plugin wait for
-- each other there and nowhere else.
CREATE FUNCTION file_usage_add(plugin text, owner bigint, file_count int, pending_count int, byte_count bigint)
RETURNS void LANGUAGE sql AS $$
  INSERT INTO file_usage (plugin_id, user_id, files, pending, bytes)
  VALUES (plugin, owner, file_count, pending_count, byte_count)
  ON CONFLICT (plugin_id, user_id) DO UPDATE SET
    files = file_usage.files + EXCLUDED.files,
    pending = file_usage.pending + EXCLUDED.pending,
    bytes = file_usage.bytes + EXCLUDED.bytes
$$;

CREATE FUNCTION files_counted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  file_count int := 0;
  pending_count int := 0;
  byte_count bigint := 0;
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.state <> 'deleted' THEN
    file_count := file_count - 1;
    byte_count := byte_count - OLD.size;
    IF OLD.state = 'pending' THEN pending_count := pending_count - 1; END IF;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.state <> 'deleted' THEN
    file_count := file_count + 1;
    byte_count := byte_count + NEW.size;
    IF NEW.state = 'pending' THEN pending_count := pending_count + 1; END IF;
  END IF;
  IF file_count <> 0 OR pending_count <> 0 OR byte_count <> 0 THEN
    PERFORM file_usage_add(coalesce(NEW.plugin_id, OLD.plugin_id), -1, file_count, pending_count, byte_count);
    PERFORM file_usage_add(coalesce(NEW.plugin_id, OLD.plugin_id), coalesce(NEW.user_id, OLD.user_id, 0), file_count, pending_count, byte_count);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER files_counted AFTER INSERT OR DELETE OR UPDATE OF state, size ON files
  FOR EACH ROW EXECUTE FUNCTION files_counted();
