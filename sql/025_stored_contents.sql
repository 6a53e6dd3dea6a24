-- Expands: a release before this one runs on.
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
