-- Expands: a release before this one runs on.
-- What comparisons of the graph store with the database found, so that administrators see it without asking.
CREATE TABLE graph_comparisons (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       timestamptz NOT NULL DEFAULT now(),
  compared bigint NOT NULL,
  missing  bigint NOT NULL,
  extra    bigint NOT NULL,
  repaired boolean NOT NULL
);
