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
