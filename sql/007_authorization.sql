-- The relationship graph as it should be, and the ordered way of every change to the graph store (service.md 2.8, 2.9).

CREATE TABLE authz_outbox (
  id           bigserial PRIMARY KEY,
  operation    varchar(30) NOT NULL
    CHECK (operation IN ('TOUCH', 'DELETE', 'DELETE_BY_OBJECT', 'DELETE_BY_SUBJECT', 'REPLACE')),
  -- {"tuples": [...], "filter": {...}}, with the names of the columns of authz_tuples.
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
  requeue_of   bigint REFERENCES authz_outbox (id) ON DELETE SET NULL
);
CREATE INDEX authz_outbox_line ON authz_outbox (id) WHERE processed_at IS NULL AND dead_at IS NULL;
CREATE INDEX authz_outbox_dead ON authz_outbox (dead_at) WHERE dead_at IS NOT NULL AND resolution IS NULL;
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
  paused_until  timestamptz,
  failures      int NOT NULL DEFAULT 0,
  last_error    text,
  last_token    text,
  last_token_at timestamptz,
  last_id       bigint NOT NULL DEFAULT 0
);
INSERT INTO authz_stream DEFAULT VALUES;

-- 2 s, 4 s, 8 s ... at most 5 minutes (service.md 3.1).
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

-- Everything a payload names, beside what the caller names: entries that share one keep their order.
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
CREATE FUNCTION authz_append(entries jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  e jsonb;
  f jsonb;
  tuples jsonb;
  by_hand boolean;
  new_id bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7391045);
  FOR e IN SELECT value FROM jsonb_array_elements(entries) LOOP
    f := e->'payload'->'filter';
    tuples := coalesce(e->'payload'->'tuples', '[]');
    by_hand := e->>'origin' = 'manual';
    new_id := nextval('authz_outbox_id_seq');
    IF f IS NOT NULL THEN
      DELETE FROM authz_tuples a USING authz_matching(f) m WHERE (by_hand OR m.origin = 'import')
         AND (a.resource_type, a.resource_id, a.relation, a.subject_type, a.subject_id, a.subject_relation)
           = (m.resource_type, m.resource_id, m.relation, m.subject_type, m.subject_id, m.subject_relation);
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
            jsonb_strip_nulls(jsonb_build_object('filter', f, 'tuples', CASE WHEN jsonb_array_length(tuples) > 0 THEN tuples END)),
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

-- Roles policies ask for (service.md 2.7). Roles of commands are relationships of the graph.
CREATE TABLE user_roles (
  global_user_id bigint NOT NULL REFERENCES global_users (id) ON DELETE CASCADE,
  role           text COLLATE "C" NOT NULL,
  granted_at     timestamptz NOT NULL DEFAULT now(),
  granted_by     text NOT NULL,
  PRIMARY KEY (global_user_id, role)
);
CREATE INDEX user_roles_role ON user_roles (role, global_user_id);

-- Who may run a command (service.md 5.6). Without a row it is enabled and open to everyone.
CREATE TABLE plugin_command_settings (
  plugin_id         text NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
  command           text NOT NULL,
  enabled           boolean NOT NULL DEFAULT true,
  policy_expression text NOT NULL DEFAULT '',
  system_role       text,
  global_roles      text[] NOT NULL DEFAULT '{}',
  plugin_role       text,
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

-- Why an execution was let in, or a caller turned away.
ALTER TABLE plugin_executions ADD COLUMN decision jsonb;
