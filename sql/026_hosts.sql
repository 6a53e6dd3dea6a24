-- Expands: a release before this one runs on.
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
