-- The job queue makes its tables in a schema of its own, which the migrating role makes: the role that serves may make none.
CREATE SCHEMA IF NOT EXISTS pgboss;
