-- The data of the service, one table after the other: who a row stands for, what its columns mean, who may write it. The graph
-- store holds what `authz_tuples` says (docs/outbox.md); files and modules hold what is named here by their SHA-256.

-- ===== The installation =====

-- Names this installation in a store it may share with others.
CREATE TABLE installation (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id  text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
  -- Fingerprint of the key that stored secrets are under, not the key; null until the first start.
  secrets_fingerprint text
);
INSERT INTO installation DEFAULT VALUES;

-- The job queue makes its tables in a schema of its own, which the migrating role makes: the role that serves may make none.
CREATE SCHEMA IF NOT EXISTS pgboss;

-- Serving processes of all hosts, each with a row of its own, written every two seconds.
CREATE TABLE host_processes (
  host_id    bigint NOT NULL,
  pid        integer NOT NULL,
  host_name  text NOT NULL,
  address    text NOT NULL,
  version    text NOT NULL,
  started_at timestamptz NOT NULL,
  seen_at    timestamptz NOT NULL DEFAULT now(),
  load       jsonb NOT NULL,
  duties     text[] NOT NULL,
  PRIMARY KEY (host_id, pid)
);

-- Answers of requests with an Idempotency-Key, so that a client that did not get its answer may send the request again.
CREATE TABLE idempotent_requests (
  -- Who sent it: a key belongs to one caller.
  caller         text NOT NULL,
  key            text NOT NULL,
  request_sha256 bytea NOT NULL,
  begun_at       timestamptz NOT NULL DEFAULT now(),
  -- Null while the request is under way, and for ever when its host ended meanwhile.
  status         int,
  headers        jsonb,
  -- Null where the answer held a secret.
  body           text,
  -- The id of what was made.
  made_id        text,
  PRIMARY KEY (caller, key)
);
CREATE INDEX idempotent_requests_begun ON idempotent_requests (begun_at);

-- What is left of a wait. One that is longer than such a wait ever is was begun before the clock was set back: it is over.
CREATE FUNCTION wait_left(until timestamptz, longest interval) RETURNS interval LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN until > clock_timestamp() AND until <= clock_timestamp() + longest THEN until - clock_timestamp() ELSE interval '0' END
$$;

-- ===== Users and their roles =====

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

-- Roles that policies ask for (docs/authorization.md "What a policy knows"). Roles of commands are relationships of the graph.
CREATE TABLE user_roles (
  global_user_id bigint NOT NULL REFERENCES global_users (id) ON DELETE CASCADE,
  role           text COLLATE "C" NOT NULL,
  granted_at     timestamptz NOT NULL DEFAULT now(),
  granted_by     text NOT NULL,
  -- An import takes away only the roles that an import gave.
  origin         text NOT NULL DEFAULT 'manual' CHECK (origin IN ('import', 'manual')),
  PRIMARY KEY (global_user_id, role)
);
CREATE INDEX user_roles_role ON user_roles (role, global_user_id);

-- ===== Plugins, their versions and settings =====

CREATE TABLE plugins (
  id                   text PRIMARY KEY,
  enabled              boolean NOT NULL DEFAULT true,
  installed_version_id bigint,
  frontend_origins     text[] NOT NULL DEFAULT '{}',
  frontend_access      text NOT NULL DEFAULT 'public' CHECK (frontend_access IN ('public', 'session')),
  -- Whether answers of triggers that can run script go out without the sandbox.
  html_trusted         boolean NOT NULL DEFAULT false,
  created_at           timestamptz NOT NULL DEFAULT now(),
  updated_at           timestamptz NOT NULL DEFAULT now()
);

-- One row per upload. `config` and `secrets` belong to the version, so that a rollback brings its own back.
CREATE TABLE plugin_versions (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  plugin_id    text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  version      text NOT NULL,
  wasm_key     text NOT NULL UNIQUE,
  sha256       text NOT NULL,
  size         bigint NOT NULL,
  manifest     jsonb NOT NULL,
  findings     jsonb NOT NULL,
  permissions  text[] NOT NULL,
  -- The rewritten module: its hash, its memory, and the format of the gate that made it.
  runnable     jsonb NOT NULL,
  config       jsonb,
  secrets      bytea,
  -- {sha256, packedBytes, files, bytes} of the frontend's ZIP; null when the version has none.
  frontend     jsonb,
  -- What its author signed: the signature, and the hash of the bytes it is over. Null: not signed.
  signature    jsonb,
  -- hosts: the only ones it may reach (empty: every public one), like api.example.org, *.example.org or either with :port;
  -- private: ranges inside it may reach (docs/access.md).
  network      jsonb NOT NULL DEFAULT '{"hosts": [], "private": []}',
  uploaded_at  timestamptz NOT NULL DEFAULT now(),
  installed_at timestamptz
);
CREATE INDEX plugin_versions_plugin ON plugin_versions (plugin_id, id DESC);

ALTER TABLE plugins ADD CONSTRAINT plugins_installed_version
  FOREIGN KEY (installed_version_id) REFERENCES plugin_versions (id) ON DELETE SET NULL;

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
  signature      jsonb,
  uploaded_at    timestamptz NOT NULL,
  uninstalled_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX uninstalled_versions_age ON uninstalled_versions (uninstalled_at);

-- Bytes of modules and frontends, by their SHA-256, so that hosts need no folder in common. Each file is cut into parts.
CREATE TABLE stored_contents (
  sha256    text PRIMARY KEY,
  size      bigint NOT NULL,
  stored_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE stored_content_parts (
  sha256 text NOT NULL REFERENCES stored_contents (sha256) ON DELETE CASCADE,
  part   integer NOT NULL,
  bytes  bytea NOT NULL,
  PRIMARY KEY (sha256, part)
);
-- Modules are read whole, once for each host: decompressing them would cost more than it saves.
ALTER TABLE stored_content_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Who may call a trigger (docs/access.md "Trigger settings"). Without a row logged-in users may.
CREATE TABLE plugin_trigger_settings (
  plugin_id          text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  trigger_name       text NOT NULL,
  enabled            boolean NOT NULL DEFAULT true,
  allow_user_session boolean NOT NULL DEFAULT true,
  allow_service_key  boolean NOT NULL DEFAULT false,
  policy_expression  text NOT NULL DEFAULT '',
  -- Null: those of the plugin.
  frontend_origins   text[],
  -- Whether executions are recorded, to run them again.
  record             boolean NOT NULL DEFAULT false,
  updated_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (plugin_id, trigger_name)
);

-- Who may run a command (docs/access.md "Commands"). Without a row it is enabled and open to all users.
CREATE TABLE plugin_command_settings (
  plugin_id         text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  command           text NOT NULL,
  enabled           boolean NOT NULL DEFAULT true,
  policy_expression text NOT NULL DEFAULT '',
  system_role       text,
  global_roles      text[] NOT NULL DEFAULT '{}',
  plugin_role       text,
  -- Whether executions are recorded, to run them again.
  record            boolean NOT NULL DEFAULT false,
  updated_at        timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (plugin_id, command)
);

-- Every policy that was ever set, with its author.
CREATE TABLE policy_revisions (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  plugin_id      text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  kind           text NOT NULL CHECK (kind IN ('trigger', 'command')),
  name           text NOT NULL,
  expression     text NOT NULL,
  author_user_id bigint,
  author_name    text NOT NULL,
  at             timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX policy_revisions_of ON policy_revisions (plugin_id, kind, name, id);

-- What is suspended: a trigger after failures (`version_id` 0), or, with an empty `trigger_name`, a version after crashes.
CREATE TABLE plugin_quarantine (
  plugin_id    text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  trigger_name text NOT NULL,
  version_id   bigint NOT NULL DEFAULT 0,
  since        timestamptz NOT NULL,
  -- Null: until an administrator resumes it.
  until        timestamptz,
  level        integer NOT NULL,
  -- Why, as a code and its details, which pages word in their language, and as a sentence.
  reason       text NOT NULL,
  details      jsonb NOT NULL,
  cause        text NOT NULL,
  -- How many callers' executions failed.
  callers      integer NOT NULL DEFAULT 0,
  PRIMARY KEY (plugin_id, trigger_name, version_id)
);

-- ===== The key-value store of plugins =====

CREATE TABLE plugin_kv (
  plugin_id  text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  key        text COLLATE "C" NOT NULL,
  value      bytea NOT NULL,
  expires_at timestamptz,
  PRIMARY KEY (plugin_id, key)
);
CREATE INDEX plugin_kv_expiry ON plugin_kv (expires_at) WHERE expires_at IS NOT NULL;

-- Changes of a value by what it was: one round trip each, correct under READ COMMITTED. Every statement of a volatile function
-- sees what was committed before that statement began, and a statement that waited for a row decides by the row as it is then.

-- Writes a value if the key is absent (p_expected null), or if its value equals p_expected. What has expired is absent.
-- Not written: `present` is the value that stood in the way, null for an absent key. That path writes nothing and locks nothing.
CREATE FUNCTION plugin_kv_update(
  p_plugin_id text, p_key text, p_expected bytea, p_value bytea, p_ttl_seconds int,
  OUT written boolean, OUT present bytea
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_expires_at timestamptz := CASE WHEN p_ttl_seconds = 0 THEN NULL ELSE now() + make_interval(secs => p_ttl_seconds) END;
BEGIN
  LOOP
    written := false;
    SELECT value INTO present FROM plugin_kv
    WHERE plugin_id = p_plugin_id AND key = p_key AND (expires_at IS NULL OR expires_at > now());
    IF p_expected IS NULL THEN
      IF FOUND THEN RETURN; END IF;
      INSERT INTO plugin_kv AS kv (plugin_id, key, value, expires_at) VALUES (p_plugin_id, p_key, p_value, v_expires_at)
      ON CONFLICT (plugin_id, key) DO UPDATE SET value = EXCLUDED.value, expires_at = EXCLUDED.expires_at
      WHERE kv.expires_at <= now();
    ELSE
      IF NOT FOUND OR present <> p_expected THEN RETURN; END IF;
      UPDATE plugin_kv SET value = p_value, expires_at = v_expires_at
      WHERE plugin_id = p_plugin_id AND key = p_key AND value = p_expected AND (expires_at IS NULL OR expires_at > now());
    END IF;
    IF FOUND THEN
      written := true;
      present := NULL;
      RETURN;
    END IF;
    -- Another transaction changed the key between the two statements: its change is visible to the next pass.
  END LOOP;
END $$;

-- Adds to a value that is the decimal text of an int64; an absent key counts as 0. p_ttl_seconds 0 keeps the time to live.
-- `total` is null when the value is no such text or the sum leaves int64: then `present` is the beginning of the value.
CREATE FUNCTION plugin_kv_increment(
  p_plugin_id text, p_key text, p_delta bigint, p_ttl_seconds int,
  OUT total text, OUT present bytea
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_expires_at timestamptz := CASE WHEN p_ttl_seconds = 0 THEN NULL ELSE now() + make_interval(secs => p_ttl_seconds) END;
BEGIN
  INSERT INTO plugin_kv AS kv (plugin_id, key, value, expires_at)
  VALUES (p_plugin_id, p_key, convert_to(p_delta::text, 'UTF8'), v_expires_at)
  ON CONFLICT (plugin_id, key) DO UPDATE SET
    value = CASE WHEN kv.expires_at <= now() THEN EXCLUDED.value
      ELSE convert_to((encode(kv.value, 'escape')::numeric + p_delta)::text, 'UTF8') END,
    expires_at = CASE WHEN kv.expires_at <= now() OR p_ttl_seconds > 0 THEN EXCLUDED.expires_at ELSE kv.expires_at END
  -- CASE alone fixes the order: a long value is not read, and what is no number is not cast.
  WHERE CASE
    WHEN kv.expires_at <= now() THEN true
    WHEN octet_length(kv.value) > 20 THEN false
    WHEN encode(kv.value, 'escape') !~ '^-?[0-9]{1,19}$' THEN false
    ELSE encode(kv.value, 'escape')::numeric BETWEEN -9223372036854775808 AND 9223372036854775807
      AND encode(kv.value, 'escape')::numeric + p_delta BETWEEN -9223372036854775808 AND 9223372036854775807
  END
  RETURNING convert_from(kv.value, 'UTF8') INTO total;
  -- The row that was refused is locked by the statement above: this is the very value.
  IF NOT FOUND THEN
    SELECT substring(value FOR 21) INTO present FROM plugin_kv WHERE plugin_id = p_plugin_id AND key = p_key;
  END IF;
END $$;

-- ===== Executions =====

-- Records of executions, in parts by time: what is over is dropped with its part, not deleted row by row.
CREATE SEQUENCE execution_records_id_seq;
CREATE TABLE execution_records (
  id            bigint NOT NULL DEFAULT nextval('execution_records_id_seq'),
  request_id    text NOT NULL,
  -- Of the caller's W3C trace context; empty when it sent none.
  trace_id      text NOT NULL DEFAULT '',
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
  log           jsonb NOT NULL,
  -- Why it was let in, or its caller turned away.
  decision      jsonb,
  -- What it was given and what its host calls got, to run it again; null when it was not recorded.
  recording     bytea
) PARTITION BY RANGE (started_at);
ALTER SEQUENCE execution_records_id_seq OWNED BY execution_records.id;
CREATE INDEX execution_records_newest ON execution_records (id DESC);
CREATE INDEX execution_records_failed ON execution_records (id DESC) WHERE outcome NOT IN ('ok', 'refused');
CREATE INDEX execution_records_plugin ON execution_records (plugin_id, id DESC);
CREATE INDEX execution_records_plugin_failed ON execution_records (plugin_id, id DESC) WHERE outcome NOT IN ('ok', 'refused');
CREATE INDEX execution_records_principal ON execution_records (principal, id DESC);
CREATE INDEX execution_records_age ON execution_records (started_at);
CREATE INDEX execution_records_request ON execution_records (request_id);
CREATE INDEX execution_records_trace ON execution_records (trace_id) WHERE trace_id <> '';
-- What no part is there for yet, and what a host with a wrong clock writes.
CREATE TABLE execution_records_other PARTITION OF execution_records DEFAULT;

-- Drops parts that are over, and makes those for the next time: of a week each, of a month when records are kept for longer than
-- a quarter. A part is named after its first day and the day behind its last. The serving role owns no table; it may call this.
CREATE FUNCTION execution_records_keep(keep interval) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET lock_timeout = '3s' SET timezone = 'UTC' AS $$
DECLARE
  width interval := CASE WHEN keep > interval '92 days' THEN interval '1 month' ELSE interval '7 days' END;
  part record;
  part_name text;
  begins timestamptz;
  ends timestamptz;
  newest timestamptz;
  dropped integer := 0;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('execution_records_keep')) THEN
    RETURN 0;
  END IF;
  FOR part IN
    SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'public.execution_records'::regclass AND c.relname ~ '_\d{8}_\d{8}$'
  LOOP
    ends := to_date(right(part.name, 8), 'YYYYMMDD');
    IF ends <= now() - keep THEN
      EXECUTE format('DROP TABLE public.%I', part.name);
      dropped := dropped + 1;
    ELSE
      newest := greatest(newest, ends);
    END IF;
  END LOOP;
  begins := greatest(newest, date_trunc('week', now()));
  WHILE begins < now() + width LOOP
    ends := date_trunc('day', begins + width);
    part_name := format('execution_records_%s_%s', to_char(begins, 'YYYYMMDD'), to_char(ends, 'YYYYMMDD'));
    EXECUTE format('CREATE TABLE public.%I (LIKE public.execution_records INCLUDING DEFAULTS)', part_name);
    EXECUTE format(
      'WITH moved AS (DELETE FROM public.execution_records_other WHERE started_at >= %L AND started_at < %L RETURNING *)
       INSERT INTO public.%I SELECT * FROM moved', begins, ends, part_name);
    EXECUTE format('ALTER TABLE public.execution_records ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
      part_name, begins, ends);
    begins := ends;
  END LOOP;
  RETURN dropped;
END $$;

-- Executions counted over time by trigger, in steps of 60, 900 and 3600 seconds; the row without a plugin counts all of them. `taken`
-- has one number for each bucket of src/records/activity.ts: how many took that long, the wait for a slot included.
CREATE TABLE trigger_activity (
  plugin_id    text NOT NULL,
  trigger_name text NOT NULL,
  step         integer NOT NULL,
  at           timestamptz NOT NULL,
  requests     bigint NOT NULL,
  failed       bigint NOT NULL,
  run_ms       double precision NOT NULL,
  taken        integer[] NOT NULL,
  PRIMARY KEY (plugin_id, step, at, trigger_name)
);
CREATE INDEX trigger_activity_age ON trigger_activity (step, at);

-- ===== Files handed to plugins =====

CREATE TABLE files (
  -- 128 random bits.
  id           text COLLATE "C" PRIMARY KEY,
  -- The order they were made in.
  number       bigint GENERATED ALWAYS AS IDENTITY,
  plugin_id    text NOT NULL,
  -- Who uploaded it, or sent it in a message; null: the plugin stored it itself, the sender has linked no account, or was erased.
  user_id      bigint REFERENCES global_users (id),
  -- The chat of the message it came in, as `CHANNEL:chat`: only there the plugin reads it. Null for others.
  chat         text COLLATE "C",
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
  -- Deleted while a client still holds an address to upload to: it counts until the address has expired.
  cancelled_at timestamptz,
  deleted_at   timestamptz,
  -- When nothing of it was left in the store.
  removed_at   timestamptz,
  CHECK (state <> 'pending' OR expires_at IS NOT NULL),
  CHECK (state <> 'ready' OR (completed_at IS NOT NULL AND digest IS NOT NULL)),
  CHECK ((state = 'deleted') = (deleted_at IS NOT NULL)),
  CHECK (removed_at IS NULL OR state = 'deleted')
);
CREATE INDEX files_newest ON files (number DESC) WHERE state <> 'deleted';
CREATE INDEX files_plugin ON files (plugin_id, number DESC) WHERE state <> 'deleted';
CREATE INDEX files_user ON files (user_id, number DESC) WHERE state <> 'deleted' AND user_id IS NOT NULL;
CREATE INDEX files_pending ON files (number DESC) WHERE state = 'pending';
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
-- What each plugin holds, without the rows of its users.
CREATE INDEX file_usage_plugins ON file_usage (plugin_id) WHERE user_id = -1;

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

-- ===== Logging in: sessions, tokens, keys =====

CREATE TABLE sessions (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind           text NOT NULL CHECK (kind IN ('user', 'admin')),
  -- How it began: who comes through the identity provider needs no password of ours.
  via            text NOT NULL DEFAULT 'password' CHECK (via IN ('password', 'idp')),
  global_user_id bigint NOT NULL REFERENCES global_users (id) ON DELETE CASCADE,
  secret_sha256  bytea NOT NULL UNIQUE,
  created_at     timestamptz NOT NULL DEFAULT now(),
  last_used_at   timestamptz NOT NULL DEFAULT now(),
  -- Absolute for an admin session; moves on with use for a user session.
  expires_at     timestamptz NOT NULL,
  -- When the password was last given, for the actions that want it recent.
  password_at    timestamptz,
  address        text NOT NULL,
  user_agent     text NOT NULL,
  -- A session of a browser counts only together with a proof of one of our own pages.
  browser        boolean NOT NULL,
  -- A session on the origin of one plugin (`plugins.origin`), and the session it was made from.
  plugin_id      text REFERENCES plugins (id) ON DELETE CASCADE,
  parent_id      bigint REFERENCES sessions (id) ON DELETE CASCADE
);
CREATE INDEX sessions_user ON sessions (global_user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;

-- A session on its way to the origin of a plugin: a code that is used once, by the browser that asked for it.
CREATE TABLE plugin_logins (
  code_sha256  bytea PRIMARY KEY,
  session_id   bigint NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  plugin_id    text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  state_sha256 bytea NOT NULL,
  expires_at   timestamptz NOT NULL
);

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

-- The triggers a key may call; `*` stands for all triggers of the plugin, those of later versions as well.
CREATE TABLE service_key_scopes (
  service_key_id bigint NOT NULL REFERENCES service_keys (id) ON DELETE CASCADE,
  plugin_id      text NOT NULL,
  trigger_name   text NOT NULL CHECK (trigger_name <> ''),
  PRIMARY KEY (service_key_id, plugin_id, trigger_name)
);

-- Failed logins of the last minutes, so that throttling survives a restart. They count by the account as the database finds it, and by
-- the caller: an address, an IPv6 network or a known browser.
CREATE TABLE login_failures (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account   text NOT NULL,
  caller    text NOT NULL,
  failed_at timestamptz NOT NULL DEFAULT now(),
  -- An attempt is written down before the password is compared.
  pending   boolean NOT NULL DEFAULT true
);
CREATE INDEX login_failures_account ON login_failures (account, failed_at);
CREATE INDEX login_failures_caller ON login_failures (caller, failed_at);

-- ===== Administrators =====

CREATE TABLE admin_credentials (
  global_user_id       bigint PRIMARY KEY REFERENCES global_users (id) ON DELETE CASCADE,
  email                text NOT NULL,
  password_hash        text NOT NULL,
  must_change_password boolean NOT NULL DEFAULT false,
  -- A temporary password is good until then.
  temporary_until      timestamptz,
  -- What the administrator may do.
  roles                text[] NOT NULL DEFAULT '{owner}',
  -- The plugins of a plugin manager; null for all of them.
  plugins              text[],
  -- When factors were last added or sessions ended: a browser logs in without a password if its last login is later.
  passwordless_after   timestamptz NOT NULL DEFAULT now(),
  -- The mail with the temporary password: null when none was ever asked for.
  mail_state           text CHECK (mail_state IN ('pending', 'sent', 'failed')),
  mail_error           text,
  mail_at              timestamptz,
  -- Which request the mail belongs to: a job of an earlier request has nothing to say any more.
  mail_request         uuid,
  created_at           timestamptz NOT NULL DEFAULT now(),
  updated_at           timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX admin_credentials_email ON admin_credentials (lower(email));

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

-- Keys that open the admin API to programs, with the scopes an administrator gave them.
CREATE TABLE admin_keys (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name              text NOT NULL,
  public            text NOT NULL UNIQUE,
  secret_sha256     bytea NOT NULL,
  -- The secret before the last rotation, good until the overlap ends.
  old_secret_sha256 bytea,
  old_until         timestamptz,
  scopes            text[] NOT NULL,
  -- A key does not outlive the appointment of the administrator who made it.
  made_by           bigint NOT NULL REFERENCES admin_credentials (global_user_id) ON DELETE CASCADE,
  created_at        timestamptz NOT NULL DEFAULT now(),
  rotated_at        timestamptz,
  expires_at        timestamptz,
  last_used_at      timestamptz
);
CREATE INDEX admin_keys_made_by ON admin_keys (made_by);

-- ===== The audit log =====

-- Who changed what. Entries are never changed and removed only when they are old; what an entry says of a person can be erased.
CREATE TABLE audit_log (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at            timestamptz NOT NULL DEFAULT now(),
  actor_kind    text NOT NULL
    CHECK (actor_kind IN ('admin', 'admin_key', 'import_key', 'user', 'anonymous', 'setup', 'command_line')),
  -- Kept as it was: the user or the key may be gone when the entry is read.
  actor_user_id bigint,
  actor_key_id  bigint,
  actor_name    text NOT NULL,
  action        text NOT NULL,
  object_type   text NOT NULL,
  object_id     text NOT NULL,
  before        jsonb,
  after         jsonb,
  request_id    text NOT NULL,
  address       text NOT NULL,
  -- An entry's sum is made of the sum of its actor, that of its states, and what stays. Erased parts leave their sum here. A salt for
  -- each part keeps the sum from being guessed back to a name; it goes with the part.
  actor_salt    uuid DEFAULT gen_random_uuid(),
  states_salt   uuid DEFAULT gen_random_uuid(),
  actor_sha256  bytea,
  states_sha256 bytea
);
CREATE INDEX audit_log_object ON audit_log (object_type, object_id, id);
CREATE INDEX audit_log_actor ON audit_log (actor_user_id, id);
CREATE INDEX audit_log_age ON audit_log (at);

-- A chain of sums over the audit log: each seal covers the entries since the one before it, and its sum. Who changes an entry, or takes
-- one out, has to make every later seal again, which the role of the service may not. `plugin-host doctor` verifies it.
CREATE TABLE audit_seals (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  first_id  bigint NOT NULL,
  last_id   bigint NOT NULL,
  entries   integer NOT NULL,
  sha256    bytea NOT NULL,
  sealed_at timestamptz NOT NULL DEFAULT now()
);

-- Erased parts hold nothing: one in which something is written afterwards has another sum.
CREATE FUNCTION audit_actor_sum(a audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN a.actor_sha256 IS NULL
      THEN sha256(convert_to(jsonb_build_array(a.actor_salt, a.actor_name, a.address)::text, 'UTF8'))
    WHEN a.actor_name = '(erased)' AND a.address = '' AND a.actor_salt IS NULL THEN a.actor_sha256
    ELSE ''::bytea END
$$;

CREATE FUNCTION audit_states_sum(a audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN a.states_sha256 IS NULL
      THEN sha256(convert_to(jsonb_build_array(a.states_salt, a.object_id, a.before, a.after)::text, 'UTF8'))
    WHEN (a.object_type = 'user' OR a.object_id = '(erased)') AND a.before IS NULL AND a.after IS NULL AND a.states_salt IS NULL
      THEN a.states_sha256
    ELSE ''::bytea END
$$;

-- The sum of entries, behind the sum of the seal before them.
CREATE FUNCTION audit_sum(previous bytea, from_id bigint, to_id bigint) RETURNS bytea
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
  SELECT sha256(previous || coalesce(string_agg(sha256(convert_to(jsonb_build_array(
      a.id, extract(epoch FROM a.at)::text, a.actor_kind, a.actor_user_id, a.actor_key_id, a.action, a.object_type,
      CASE WHEN a.object_type = 'user' THEN a.object_id END, a.request_id)::text, 'UTF8')
      || public.audit_actor_sum(a) || public.audit_states_sum(a)), ''::bytea ORDER BY a.id), ''::bytea))
  FROM public.audit_log a WHERE a.id BETWEEN from_id AND to_id
$$;

-- Seals what came since the last seal; returns how many entries.
CREATE FUNCTION audit_seal() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET lock_timeout = '500ms' AS $$
DECLARE
  last record;
  found record;
BEGIN
  -- While it is held no entry is under way: what has a number by then is there.
  LOCK TABLE public.audit_log IN SHARE MODE;
  SELECT coalesce(max(s.last_id), 0) AS last_id, coalesce((array_agg(s.sha256 ORDER BY s.id DESC))[1], ''::bytea) AS sha256
    INTO last FROM public.audit_seals s;
  SELECT min(a.id) AS low, max(a.id) AS high, count(*) AS entries INTO found FROM public.audit_log a WHERE a.id > last.last_id;
  IF found.entries = 0 THEN
    RETURN 0;
  END IF;
  INSERT INTO public.audit_seals (first_id, last_id, entries, sha256)
    VALUES (found.low, found.high, found.entries, public.audit_sum(last.sha256, found.low, found.high));
  RETURN found.entries;
END $$;

-- Seals that do not fit their entries any more. What retention has removed cannot be verified.
CREATE FUNCTION audit_broken_seals() RETURNS TABLE (seal bigint, first_id bigint, last_id bigint, sealed_at timestamptz)
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
  SELECT s.id, s.first_id, s.last_id, s.sealed_at
  FROM (SELECT *, lag(x.sha256, 1, ''::bytea) OVER (ORDER BY x.id) AS previous FROM public.audit_seals x) s
  WHERE s.sha256 <> public.audit_sum(s.previous, s.first_id, s.last_id)
    AND NOT (s.sealed_at < now() - interval '90 days'
      AND s.entries > (SELECT count(*) FROM public.audit_log a WHERE a.id BETWEEN s.first_id AND s.last_id))
  ORDER BY s.id
$$;

CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_setting('plugin_host.audit_retention', true) = 'on' THEN
    IF OLD.at < now() - interval '90 days' THEN
      RETURN OLD;
    END IF;
  END IF;
  -- An erasure leaves the sums as they were, and everything else.
  IF TG_OP = 'UPDATE' AND current_setting('plugin_host.audit_erasure', true) = 'on' THEN
    IF (NEW.id, NEW.at, NEW.actor_kind, NEW.actor_user_id, NEW.actor_key_id, NEW.action, NEW.object_type, NEW.request_id)
        IS NOT DISTINCT FROM
       (OLD.id, OLD.at, OLD.actor_kind, OLD.actor_user_id, OLD.actor_key_id, OLD.action, OLD.object_type, OLD.request_id)
      AND (NEW.object_type <> 'user' OR NEW.object_id = OLD.object_id)
      AND public.audit_actor_sum(NEW) = public.audit_actor_sum(OLD)
      AND public.audit_states_sum(NEW) = public.audit_states_sum(OLD) THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'audit_log is append-only';
END $$;

CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE ON audit_log
  FOR EACH ROW EXECUTE FUNCTION audit_log_is_append_only();
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_append_only();

-- Removes entries that are old: not before 90 days, whatever it is asked for. Returns how many.
CREATE FUNCTION audit_log_remove_old(age interval, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE removed bigint;
BEGIN
  PERFORM set_config('plugin_host.audit_retention', 'on', true);
  DELETE FROM public.audit_log WHERE id IN
    (SELECT id FROM public.audit_log WHERE at < now() - greatest(age, interval '90 days') ORDER BY id LIMIT most);
  GET DIAGNOSTICS removed = ROW_COUNT;
  PERFORM set_config('plugin_host.audit_retention', 'off', true);
  RETURN removed;
END $$;

-- Whether an entry about relationships names one of these persons: alone, among others, or in the filter of a deletion.
CREATE FUNCTION audit_names_person(a audit_log, external_ids text[]) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT FROM unnest(external_ids) AS e (id)
    WHERE right(a.object_id, length('@user:' || e.id)) = '@user:' || e.id
      OR EXISTS (
        SELECT FROM jsonb_array_elements_text(
          coalesce(a.before -> 'relationships', '[]') || coalesce(a.after -> 'relationships', '[]')) AS r (tuple)
        WHERE right(r.tuple, length('@user:' || e.id)) = '@user:' || e.id)
      OR CASE WHEN a.object_id LIKE '{%'
        THEN a.object_id::jsonb @> jsonb_build_object('subject_type', 'user', 'subject_id', e.id) ELSE false END)
$$;

-- Erases a user's name and address where they acted (also where they had not yet logged in), and what entries about them, their files and
-- their relationships say. Either id may be null; external ids the user had before count too. An entry about several relationships loses
-- all of them. Who acted when, on what kind of object, stays, with the number of the user alone. Only for a user who is gone: the role of
-- the service may call it. Returns how many entries.
CREATE FUNCTION audit_erase_person(erased_user bigint, erased_external_id text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  erased bigint;
  external_ids text[];
BEGIN
  IF EXISTS (SELECT FROM public.global_users u WHERE u.id = erased_user OR u.external_id = erased_external_id)
    OR EXISTS (SELECT FROM public.persons p WHERE p.external_id = erased_external_id) THEN
    RAISE EXCEPTION 'the person is still there';
  END IF;
  SELECT array_agg(DISTINCT e.id) INTO external_ids FROM (
    SELECT erased_external_id AS id
    UNION ALL
    SELECT unnest(ARRAY[a.before ->> 'external_id', a.after ->> 'external_id']) FROM public.audit_log a
      WHERE a.object_type = 'user' AND a.object_id = erased_user::text) AS e
    WHERE e.id IS NOT NULL AND NOT EXISTS (SELECT FROM public.global_users u WHERE u.external_id = e.id);
  PERFORM set_config('plugin_host.audit_erasure', 'on', true);
  WITH found AS (
    SELECT a.id,
      a.actor_sha256 IS NULL AND coalesce(a.actor_user_id = erased_user
        OR a.actor_kind = 'anonymous' AND a.object_type = 'user' AND a.object_id = erased_user::text, false) AS acted,
      a.states_sha256 IS NULL AND coalesce(CASE a.object_type
        WHEN 'user' THEN a.object_id = erased_user::text
        WHEN 'file' THEN a.before ->> 'user_id' = erased_user::text
        WHEN 'relationship' THEN external_ids IS NOT NULL AND public.audit_names_person(a, external_ids) END, false) AS about
    FROM public.audit_log a
    WHERE a.actor_user_id = erased_user OR a.object_type IN ('user', 'relationship', 'file')
  )
  UPDATE public.audit_log a SET
    actor_sha256 = CASE WHEN f.acted THEN public.audit_actor_sum(a) ELSE a.actor_sha256 END,
    actor_name = CASE WHEN f.acted THEN '(erased)' ELSE a.actor_name END,
    address = CASE WHEN f.acted THEN '' ELSE a.address END,
    actor_salt = CASE WHEN f.acted THEN NULL ELSE a.actor_salt END,
    states_sha256 = CASE WHEN f.about THEN public.audit_states_sum(a) ELSE a.states_sha256 END,
    object_id = CASE WHEN f.about AND a.object_type <> 'user' THEN '(erased)' ELSE a.object_id END,
    before = CASE WHEN f.about THEN NULL ELSE a.before END,
    after = CASE WHEN f.about THEN NULL ELSE a.after END,
    states_salt = CASE WHEN f.about THEN NULL ELSE a.states_salt END
  FROM found f WHERE f.id = a.id AND (f.acted OR f.about);
  GET DIAGNOSTICS erased = ROW_COUNT;
  PERFORM set_config('plugin_host.audit_erasure', 'off', true);
  RETURN erased;
END $$;

-- ===== The relationship graph =====

-- The ordered way of every change to the graph store (docs/outbox.md). Processed in ascending order of ids.
CREATE TABLE authz_outbox (
  id           bigserial PRIMARY KEY,
  operation    varchar(30) NOT NULL
    CHECK (operation IN ('TOUCH', 'DELETE', 'DELETE_BY_OBJECT', 'DELETE_BY_SUBJECT', 'REPLACE')),
  -- {"tuples": [...], "filter": {...}, "removed": [...]}, with the names of the columns of authz_tuples; `removed`: what the filter took
  -- out of them.
  payload      jsonb NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  processed_at timestamptz,
  attempts     int NOT NULL DEFAULT 0,
  last_error   text,
  locked_until timestamptz,
  -- Every entity the entry names, as `type:id`: entries that share one keep their order.
  keys         text[] NOT NULL,
  -- Set after the tenth failed attempt: the entry has left the line.
  dead_at      timestamptz,
  resolution   varchar(10) CHECK (resolution IN ('requeued', 'discarded')),
  resolved_at  timestamptz,
  resolved_by  text,
  -- The dead entry whose current state this one delivers.
  requeue_of   bigint REFERENCES authz_outbox (id) ON DELETE SET NULL,
  -- Tells an entry from another one of the same number in a database that was restored from a backup.
  mark         uuid NOT NULL DEFAULT gen_random_uuid()
);
CREATE INDEX authz_outbox_line ON authz_outbox (id) WHERE processed_at IS NULL AND dead_at IS NULL;
CREATE INDEX authz_outbox_dead ON authz_outbox (dead_at) WHERE dead_at IS NOT NULL AND resolution IS NULL;
-- Entries that died and were resolved, among millions that were delivered.
CREATE INDEX authz_outbox_resolved ON authz_outbox (resolved_at) WHERE dead_at IS NOT NULL;
CREATE INDEX authz_outbox_age ON authz_outbox (processed_at) WHERE processed_at IS NOT NULL;

-- The desired graph, written in the transaction of every change. Ids are ours; the store's spelling is made at its edge.
CREATE TABLE authz_tuples (
  resource_type    text COLLATE "C" NOT NULL,
  resource_id      text COLLATE "C" NOT NULL,
  relation         text COLLATE "C" NOT NULL,
  subject_type     text COLLATE "C" NOT NULL,
  subject_id       text COLLATE "C" NOT NULL,
  subject_relation text COLLATE "C" NOT NULL DEFAULT '',
  origin           text NOT NULL CHECK (origin IN ('import', 'manual')),
  outbox_id        bigint NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (resource_type, resource_id, relation, subject_type, subject_id, subject_relation)
);
CREATE INDEX authz_tuples_subject ON authz_tuples (subject_type, subject_id, resource_type, relation);

-- One row: who delivers, and how far.
CREATE TABLE authz_stream (
  id            smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  owner         uuid,
  -- Mark of the store that is delivered to: another one does not have what was delivered since.
  store         text,
  -- When the owner last did something: a silent one is taken over from.
  worked_at     timestamptz,
  epoch         bigint NOT NULL DEFAULT 0,
  -- What the store was last told: the number of the write and its newest entry, as the store holds them next to the epoch.
  tick          bigint NOT NULL DEFAULT 0,
  position      text,
  paused_since  timestamptz,
  paused_until  timestamptz,
  failures      int NOT NULL DEFAULT 0,
  last_error    text,
  last_token    text,
  last_token_at timestamptz,
  last_id       bigint NOT NULL DEFAULT 0
);
INSERT INTO authz_stream DEFAULT VALUES;

-- 2 s, 4 s, 8 s ... at most 5 minutes.
CREATE FUNCTION authz_backoff(attempts int) RETURNS interval LANGUAGE sql IMMUTABLE AS
$$ SELECT least(interval '5 minutes', interval '1 second' * (2 ^ least(attempts, 9))) $$;

CREATE FUNCTION authz_is(a authz_tuples, t jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT (a.resource_type, a.resource_id, a.relation, a.subject_type, a.subject_id, a.subject_relation)
       = (t->>'resource_type', t->>'resource_id', t->>'relation', t->>'subject_type', t->>'subject_id', coalesce(t->>'subject_relation', ''))
$$;

CREATE FUNCTION authz_json(t authz_tuples) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object('resource_type', t.resource_type, 'resource_id', t.resource_id, 'relation', t.relation,
    'subject_type', t.subject_type, 'subject_id', t.subject_id, 'subject_relation', t.subject_relation)
$$;

-- Everything a payload names, and what the caller names: entries that share one keep their order.
CREATE FUNCTION authz_keys(named jsonb, tuples jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY(
    SELECT jsonb_array_elements_text(named)
    UNION SELECT (t->>'resource_type') || ':' || (t->>'resource_id') FROM jsonb_array_elements(tuples) t
    UNION SELECT (t->>'subject_type') || ':' || (t->>'subject_id') FROM jsonb_array_elements(tuples) t)
$$;

-- The tuples a filter names. It names an object or a subject whole, so that an index finds them and an entry has its keys.
CREATE FUNCTION authz_matching(f jsonb) RETURNS SETOF authz_tuples LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF f->>'resource_id' IS NOT NULL THEN
    RETURN QUERY SELECT * FROM authz_tuples t
     WHERE t.resource_type = f->>'resource_type' AND t.resource_id = f->>'resource_id'
       AND (f->>'relation' IS NULL OR t.relation = f->>'relation')
       AND (f->>'subject_type' IS NULL OR t.subject_type = f->>'subject_type')
       AND (f->>'subject_id' IS NULL OR t.subject_id = f->>'subject_id');
  ELSE
    RETURN QUERY SELECT * FROM authz_tuples t
     WHERE t.subject_type = f->>'subject_type' AND t.subject_id = f->>'subject_id'
       AND (f->>'resource_type' IS NULL OR t.resource_type = f->>'resource_type')
       AND (f->>'relation' IS NULL OR t.relation = f->>'relation');
  END IF;
END $$;

-- Enqueues entries in their order and writes what they mean into authz_tuples. The last statement of its transaction: from
-- here to the commit one transaction at a time goes on, so that the order of ids is the order of commits.
-- An entry is {"operation", "origin", "keys", "payload": {"tuples", "filter"}}. What was granted by hand stays when an import
-- takes its own away: an import touches, deletes and replaces tuples of origin `import` alone. Returns the last id; the
-- ids of one call follow each other.
-- A filter's entry names what it has taken out of authz_tuples: a store that is written by no other holds no more than that, so that it
-- need not be searched.
CREATE FUNCTION authz_append(entries jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  e jsonb;
  f jsonb;
  tuples jsonb;
  removed jsonb;
  by_hand boolean;
  new_id bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7391045);
  FOR e IN SELECT value FROM jsonb_array_elements(entries) LOOP
    f := e->'payload'->'filter';
    tuples := coalesce(e->'payload'->'tuples', '[]');
    by_hand := e->>'origin' = 'manual';
    new_id := nextval('authz_outbox_id_seq');
    removed := NULL;
    IF f IS NOT NULL THEN
      WITH gone AS (
        DELETE FROM authz_tuples a USING authz_matching(f) m WHERE (by_hand OR m.origin = 'import')
           AND (a.resource_type, a.resource_id, a.relation, a.subject_type, a.subject_id, a.subject_relation)
             = (m.resource_type, m.resource_id, m.relation, m.subject_type, m.subject_id, m.subject_relation)
        RETURNING a.resource_type, a.resource_id, a.relation, a.subject_type, a.subject_id, a.subject_relation)
      SELECT coalesce(jsonb_agg(to_jsonb(gone)), '[]') INTO removed FROM gone;
    END IF;
    IF e->>'operation' = 'DELETE' THEN
      IF NOT by_hand THEN
        -- What stays by hand is not deleted in the store either.
        SELECT coalesce(jsonb_agg(x.t), '[]') INTO tuples FROM jsonb_array_elements(tuples) AS x (t)
         WHERE NOT EXISTS (SELECT 1 FROM authz_tuples a WHERE a.origin = 'manual' AND authz_is(a, x.t));
      END IF;
      DELETE FROM authz_tuples a USING jsonb_array_elements(tuples) AS x (t) WHERE authz_is(a, x.t);
    ELSE
      INSERT INTO authz_tuples (resource_type, resource_id, relation, subject_type, subject_id, subject_relation, origin, outbox_id)
      SELECT DISTINCT x.resource_type, x.resource_id, x.relation, x.subject_type, x.subject_id, coalesce(x.subject_relation, ''), e->>'origin', new_id
        FROM jsonb_to_recordset(tuples)
          AS x (resource_type text, resource_id text, relation text, subject_type text, subject_id text, subject_relation text)
      ON CONFLICT (resource_type, resource_id, relation, subject_type, subject_id, subject_relation) DO UPDATE
        SET outbox_id = excluded.outbox_id, origin = CASE WHEN excluded.origin = 'manual' THEN 'manual' ELSE authz_tuples.origin END;
      -- What stays by hand although the filter names it is written again behind the deletion.
      IF f IS NOT NULL AND NOT by_hand THEN
        SELECT tuples || coalesce(jsonb_agg(authz_json(m)), '[]') INTO tuples FROM authz_matching(f) m WHERE m.outbox_id <> new_id;
      END IF;
    END IF;
    INSERT INTO authz_outbox (id, operation, payload, keys)
    VALUES (new_id, e->>'operation',
            jsonb_strip_nulls(jsonb_build_object('filter', f, 'removed', removed, 'tuples', CASE WHEN jsonb_array_length(tuples) > 0 THEN tuples END)),
            authz_keys(e->'keys', tuples));
  END LOOP;
  PERFORM pg_notify('authz_outbox', '');
  RETURN new_id;
END $$;

-- Puts a dead entry back to the tail as what it would mean now, never as what it said then. Returns the last id, 0 when
-- nothing is left to deliver, null when there is no such dead entry.
CREATE FUNCTION authz_requeue(dead bigint, by_name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  o authz_outbox;
  f jsonb;
  wanted jsonb;
  gone jsonb;
  new_id bigint := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(7391045);
  SELECT * INTO o FROM authz_outbox WHERE id = dead AND dead_at IS NOT NULL AND resolution IS NULL FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  f := o.payload->'filter';
  SELECT coalesce(jsonb_agg(x.t) FILTER (WHERE a.relation IS NOT NULL), '[]'), coalesce(jsonb_agg(x.t) FILTER (WHERE a.relation IS NULL), '[]')
    INTO wanted, gone
    FROM jsonb_array_elements(coalesce(o.payload->'tuples', '[]')) AS x (t) LEFT JOIN authz_tuples a ON authz_is(a, x.t);
  IF f IS NOT NULL THEN
    SELECT wanted || coalesce(jsonb_agg(authz_json(t)), '[]') INTO wanted FROM authz_matching(f) t;
  END IF;
  IF jsonb_array_length(gone) > 0 THEN
    INSERT INTO authz_outbox (operation, payload, keys, requeue_of)
    VALUES ('DELETE', jsonb_build_object('tuples', gone), authz_keys(to_jsonb(o.keys), gone), dead) RETURNING id INTO new_id;
  END IF;
  IF f IS NOT NULL OR jsonb_array_length(wanted) > 0 THEN
    INSERT INTO authz_outbox (operation, payload, keys, requeue_of)
    VALUES (CASE WHEN f IS NULL THEN 'TOUCH' ELSE 'REPLACE' END,
            jsonb_strip_nulls(jsonb_build_object('filter', f, 'tuples', wanted)), authz_keys(to_jsonb(o.keys), wanted), dead) RETURNING id INTO new_id;
  END IF;
  UPDATE authz_outbox SET resolution = 'requeued', resolved_at = now(), resolved_by = by_name WHERE id = dead;
  PERFORM pg_notify('authz_outbox', '');
  RETURN new_id;
END $$;

-- What comparisons of the graph store with the database found, so that administrators see it without asking.
CREATE TABLE graph_comparisons (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       timestamptz NOT NULL DEFAULT now(),
  compared bigint NOT NULL,
  missing  bigint NOT NULL,
  extra    bigint NOT NULL,
  repaired boolean NOT NULL
);

-- ===== University data =====

-- Data as they were imported last (docs/university.md), and the log of imports.
--
-- A record is found by the id the university's systems know it by. What is gone from the source stays, inactive, with the time it was
-- missed: others refer to it. `holds` says whether the record held at its last import, so that a day that passes is noticed.

CREATE TABLE persons (
  external_id text COLLATE "C" PRIMARY KEY,
  last_name text NOT NULL,
  first_name text NOT NULL,
  middle_name text,
  name_i18n jsonb,
  email text,
  phone text,
  locale text,
  nationality_type text,
  citizenship text,
  idp_account_id text,
  primary_channel text,
  channels jsonb NOT NULL,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE courses (
  external_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  name_i18n jsonb,
  code text,
  description text,
  credits numeric,
  hours numeric,
  -- A course comes before departments do, so nothing holds it to one that is there.
  department_external_id text COLLATE "C",
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE semesters (
  external_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  name_i18n jsonb,
  academic_year text NOT NULL,
  kind text,
  start_date date NOT NULL,
  end_date date NOT NULL,
  is_current boolean NOT NULL,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE faculties (
  external_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  name_i18n jsonb,
  short_name text,
  code text,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE departments (
  external_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  name_i18n jsonb,
  faculty_external_id text COLLATE "C" NOT NULL REFERENCES faculties (external_id),
  short_name text,
  code text,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE programs (
  external_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  name_i18n jsonb,
  department_external_id text COLLATE "C" NOT NULL REFERENCES departments (external_id),
  code text,
  degree text,
  education_form text,
  duration_years numeric,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE streams (
  external_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  name_i18n jsonb,
  program_external_id text COLLATE "C" NOT NULL REFERENCES programs (external_id),
  admission_year int,
  study_year int,
  is_foreign boolean NOT NULL,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE groups (
  external_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  name_i18n jsonb,
  stream_external_id text COLLATE "C" NOT NULL REFERENCES streams (external_id),
  admission_year int,
  language text,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE subgroups (
  external_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  name_i18n jsonb,
  group_external_id text COLLATE "C" NOT NULL REFERENCES groups (external_id),
  kind text,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE teacher_positions (
  external_id text COLLATE "C" PRIMARY KEY,
  person_external_id text COLLATE "C" NOT NULL REFERENCES persons (external_id),
  department_external_id text COLLATE "C" NOT NULL REFERENCES departments (external_id),
  title text NOT NULL,
  rate numeric,
  is_primary boolean NOT NULL,
  start_date date,
  end_date date,
  holds boolean NOT NULL,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE student_positions (
  external_id text COLLATE "C" PRIMARY KEY,
  person_external_id text COLLATE "C" NOT NULL REFERENCES persons (external_id),
  group_external_id text COLLATE "C" NOT NULL REFERENCES groups (external_id),
  record_book text,
  status text NOT NULL,
  funding_type text,
  education_form text,
  start_date date,
  end_date date,
  holds boolean NOT NULL,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE student_subgroups (
  external_id text COLLATE "C" PRIMARY KEY,
  person_external_id text COLLATE "C" NOT NULL REFERENCES persons (external_id),
  subgroup_external_id text COLLATE "C" NOT NULL REFERENCES subgroups (external_id),
  semester_external_id text COLLATE "C" REFERENCES semesters (external_id),
  start_date date,
  end_date date,
  holds boolean NOT NULL,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE teaching_assignments (
  external_id text COLLATE "C" PRIMARY KEY,
  person_external_id text COLLATE "C" NOT NULL REFERENCES persons (external_id),
  stream_external_id text COLLATE "C" NOT NULL REFERENCES streams (external_id),
  course_external_id text COLLATE "C" NOT NULL REFERENCES courses (external_id),
  semester_external_id text COLLATE "C" NOT NULL REFERENCES semesters (external_id),
  kind text,
  audience text NOT NULL,
  holds boolean NOT NULL,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE administrative_appointments (
  external_id text COLLATE "C" PRIMARY KEY,
  person_external_id text COLLATE "C" NOT NULL REFERENCES persons (external_id),
  object_type text NOT NULL,
  -- One of five tables.
  object_external_id text COLLATE "C" NOT NULL,
  role text NOT NULL,
  start_date date,
  end_date date,
  holds boolean NOT NULL,
  is_active boolean NOT NULL,
  metadata jsonb NOT NULL,
  source_updated_at timestamptz,
  missing_since timestamptz,
  changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX teacher_positions_person ON teacher_positions (person_external_id) WHERE holds;
CREATE INDEX student_positions_person ON student_positions (person_external_id) WHERE holds;
CREATE INDEX student_positions_group ON student_positions (group_external_id) WHERE holds;
CREATE INDEX student_subgroups_tuple ON student_subgroups (subgroup_external_id, person_external_id) WHERE holds;
CREATE INDEX teaching_assignments_tuple ON teaching_assignments (stream_external_id, person_external_id) WHERE holds;
CREATE INDEX administrative_appointments_tuple ON administrative_appointments (object_external_id, person_external_id) WHERE holds;
CREATE INDEX persons_idp_account ON persons (idp_account_id) WHERE idp_account_id IS NOT NULL;

-- One row for each time something was imported.
CREATE TABLE university_imports (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind        text NOT NULL CHECK (kind IN ('batch', 'pull')),
  state       text NOT NULL CHECK (state IN ('running', 'succeeded', 'partial', 'failed', 'interrupted')),
  -- An administrator's email, an administration key, `admin.api_key`, `setup mode`, `schedule`, or who stood at the command line.
  started_by  text NOT NULL,
  started_at  timestamptz NOT NULL DEFAULT now(),
  -- Tells that the importing process is alive.
  seen_at     timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  -- What went wrong as a whole.
  problem     text
);
CREATE INDEX university_imports_age ON university_imports (finished_at);
CREATE INDEX university_imports_running ON university_imports (id) WHERE state = 'running';

-- One row for each type of an import, in the order of the work.
CREATE TABLE university_import_types (
  import_id   bigint NOT NULL REFERENCES university_imports (id) ON DELETE CASCADE,
  type        text NOT NULL,
  position    smallint NOT NULL,
  state       text NOT NULL CHECK (state IN ('waiting', 'fetching', 'running', 'succeeded', 'partial', 'failed', 'unchanged', 'not_offered', 'stopped')),
  total       int NOT NULL DEFAULT 0,
  success     int NOT NULL DEFAULT 0,
  created     int NOT NULL DEFAULT 0,
  updated     int NOT NULL DEFAULT 0,
  deactivated int NOT NULL DEFAULT 0,
  failed      int NOT NULL DEFAULT 0,
  problem     text,
  started_at  timestamptz,
  finished_at timestamptz,
  -- Of a list that the brake has stopped: how many of the active records it would make inactive.
  ending      int,
  active      int,
  PRIMARY KEY (import_id, type)
);

-- The first of those records.
CREATE TABLE university_import_ending (
  import_id   bigint NOT NULL,
  type        text NOT NULL,
  external_id text NOT NULL,
  PRIMARY KEY (import_id, type, external_id),
  FOREIGN KEY (import_id, type) REFERENCES university_import_types ON DELETE CASCADE
);

CREATE TABLE university_import_errors (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  import_id   bigint NOT NULL REFERENCES university_imports (id) ON DELETE CASCADE,
  type        text NOT NULL,
  index       int NOT NULL,
  external_id text,
  field       text,
  code        text NOT NULL,
  message     text NOT NULL
);
CREATE INDEX university_import_errors_of ON university_import_errors (import_id, id);

-- What the source said of a list that was taken over whole, so that the same list need not be fetched again.
CREATE TABLE university_sources (
  type          text PRIMARY KEY,
  url           text,
  etag          text,
  last_modified text,
  -- Grows with every batch, so that a pull notices one that came in between.
  writes        bigint NOT NULL DEFAULT 0
);

-- What the columns of administrators' files mean: said once for a type, and taken for the next file. Null: the column is left out.
CREATE TABLE import_columns (
  type        text NOT NULL,
  column_name text NOT NULL CHECK (length(column_name) BETWEEN 1 AND 200),
  field       text,
  PRIMARY KEY (type, column_name)
);

-- ===== Messengers: what came in, what goes out, and which accounts belong to users =====

-- Every update is stored before it is answered. Its row is handled in one transaction with the replies it led to.
CREATE TABLE messenger_updates (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel     text NOT NULL,
  -- The channel's own id: a repeated one is dropped.
  update_id   text COLLATE "C" NOT NULL,
  chat_id     text COLLATE "C" NOT NULL,
  -- As it came: text, for messages may hold what jsonb does not take.
  payload     text NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now(),
  attempts    int NOT NULL DEFAULT 0,
  handled_at  timestamptz,
  outcome     text NOT NULL DEFAULT '',
  UNIQUE (channel, update_id)
);
CREATE INDEX messenger_updates_open ON messenger_updates (channel, chat_id, id) WHERE handled_at IS NULL;
CREATE INDEX messenger_updates_age ON messenger_updates (received_at);

-- Chats that a message has come from: the only ones plugins may write to.
CREATE TABLE messenger_chats (
  channel    text NOT NULL,
  chat_id    text COLLATE "C" NOT NULL,
  is_private boolean NOT NULL,
  seen_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (channel, chat_id)
);
CREATE INDEX messenger_chats_id ON messenger_chats (chat_id);

-- Accounts of messengers that users have linked with a one-time code; `chat_id` is the private chat with that account.
CREATE TABLE messenger_accounts (
  channel        text NOT NULL,
  account_id     text COLLATE "C" NOT NULL,
  global_user_id bigint NOT NULL REFERENCES global_users (id) ON DELETE CASCADE,
  chat_id        text COLLATE "C" NOT NULL,
  linked_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (channel, account_id),
  UNIQUE (global_user_id, channel)
);

-- One code of a user at a time.
CREATE TABLE messenger_link_codes (
  global_user_id bigint PRIMARY KEY REFERENCES global_users (id) ON DELETE CASCADE,
  code_sha256    bytea NOT NULL UNIQUE,
  expires_at     timestamptz NOT NULL
);

-- Wrong codes of the last minutes, by account.
CREATE TABLE messenger_link_failures (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel    text NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  failed_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX messenger_link_failures_of ON messenger_link_failures (channel, account_id, failed_at);

-- Messages on their way out. A message with files is sent in several parts; `parts_sent` of them have arrived.
CREATE TABLE outgoing_messages (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel    text NOT NULL,
  chat_id    text COLLATE "C" NOT NULL,
  -- Null: the host itself answers.
  plugin_id  text,
  source     text NOT NULL CHECK (source IN ('reply', 'notify_user', 'notify_chat', 'notify_students', 'host')),
  user_id    bigint,
  message    jsonb NOT NULL,
  request_id text NOT NULL,
  -- Names what is to be sent once, however often the execution behind it is repeated.
  once_key   text COLLATE "C" UNIQUE,
  -- Answers come before what many are told.
  urgent     boolean NOT NULL,
  state      text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'sending', 'sent', 'failed', 'uncertain')),
  parts_sent int NOT NULL DEFAULT 0,
  attempts   int NOT NULL DEFAULT 0,
  next_at    timestamptz NOT NULL DEFAULT now(),
  last_error text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at   timestamptz
);
CREATE INDEX outgoing_messages_open ON outgoing_messages (channel, chat_id, id) WHERE state IN ('queued', 'sending');
CREATE INDEX outgoing_messages_due ON outgoing_messages (channel, urgent DESC, next_at, id) WHERE state = 'queued';
CREATE INDEX outgoing_messages_plugin ON outgoing_messages (plugin_id, id DESC);
-- Messages that failed, and those of a request, among millions that were sent.
CREATE INDEX outgoing_messages_failed ON outgoing_messages (id) WHERE state IN ('failed', 'uncertain');
CREATE INDEX outgoing_messages_request ON outgoing_messages (request_id);
CREATE INDEX outgoing_messages_ended ON outgoing_messages (ended_at) WHERE ended_at IS NOT NULL;

-- ===== Events: what plugins publish, who is told of them, and how far that is =====

CREATE TABLE events (
  -- The order of their publication: of one plugin the order they were committed in.
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id   uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
  plugin_id  text NOT NULL,
  type       text COLLATE "C" NOT NULL,
  -- JSON as it was published: text, so that no number loses digits.
  data       text NOT NULL,
  request_id text NOT NULL,
  -- The trace it was published in, as the header traceparent names it; empty for none.
  traceparent text NOT NULL DEFAULT '',
  -- Names what is published once, however often the execution behind it is repeated.
  once_key   text COLLATE "C" UNIQUE,
  at         timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX events_plugin ON events (plugin_id, id DESC);
CREATE INDEX events_at ON events (at);

-- Empty lists mean all.
CREATE TABLE event_subscriptions (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name       text NOT NULL,
  url        text NOT NULL,
  secret     bytea NOT NULL,
  types      text[] NOT NULL,
  plugins    text[] NOT NULL,
  enabled    boolean NOT NULL DEFAULT true,
  -- Why the host itself has switched it off; empty otherwise.
  disabled_why text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- One row for each event a subscriber is to be told of.
CREATE TABLE event_deliveries (
  subscription_id bigint NOT NULL REFERENCES event_subscriptions (id) ON DELETE CASCADE,
  event_id        bigint NOT NULL REFERENCES events (id) ON DELETE CASCADE,
  -- Of the event: what one plugin publishes is delivered in order.
  plugin_id       text NOT NULL,
  state           text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'dead')),
  attempts        int NOT NULL DEFAULT 0,
  next_at         timestamptz NOT NULL DEFAULT now(),
  last_status     int,
  last_error      text NOT NULL DEFAULT '',
  ended_at        timestamptz,
  PRIMARY KEY (subscription_id, event_id)
);
CREATE INDEX event_deliveries_waiting ON event_deliveries (subscription_id, plugin_id, event_id) WHERE state = 'waiting';
CREATE INDEX event_deliveries_event ON event_deliveries (event_id);
-- Deliveries that were given up are counted each time an administrator looks at the overview.
CREATE INDEX event_deliveries_dead ON event_deliveries (subscription_id) WHERE state = 'dead';
