-- Expands: a release before this one runs on.
-- What the columns of administrators' files mean: said once for a type, and taken for the next file. Null: the column is left out.
CREATE TABLE import_columns (
  type        text NOT NULL,
  column_name text NOT NULL CHECK (length(column_name) BETWEEN 1 AND 200),
  field       text,
  PRIMARY KEY (type, column_name)
);
-- Of a million files few are being uploaded.
CREATE INDEX files_pending ON files (number DESC) WHERE state = 'pending';
