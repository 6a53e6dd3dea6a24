-- Expands: a release before this one runs on.
-- Of a list that the brake has stopped: how many of the active records it would make inactive, and the first of them.
ALTER TABLE university_import_types ADD COLUMN ending int;
ALTER TABLE university_import_types ADD COLUMN active int;
CREATE TABLE university_import_ending (
  import_id   bigint NOT NULL,
  type        text NOT NULL,
  external_id text NOT NULL,
  PRIMARY KEY (import_id, type, external_id),
  FOREIGN KEY (import_id, type) REFERENCES university_import_types ON DELETE CASCADE
);
