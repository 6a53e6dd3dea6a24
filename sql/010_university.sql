-- University data as it was imported last (service.md 2.10, university-fields.md), and the log of imports.
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
  -- An administrator's email, `admin.api_key`, `schedule`, or who stood at the command line.
  started_by  text NOT NULL,
  started_at  timestamptz NOT NULL DEFAULT now(),
  -- Tells that whoever imports is alive.
  seen_at     timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  -- What went wrong as a whole.
  problem     text
);
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
  PRIMARY KEY (import_id, type)
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

-- An import takes away only the roles an import gave.
ALTER TABLE user_roles ADD COLUMN origin text NOT NULL DEFAULT 'manual' CHECK (origin IN ('import', 'manual'));

-- As before, and a filter's entry names what it has taken out of authz_tuples: a store that nobody else writes holds no more than that,
-- so that it need not be searched.
CREATE OR REPLACE FUNCTION authz_append(entries jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
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
