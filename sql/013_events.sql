-- Events that plugins publish (service.md 6, decisions.md 7), who is told of them, and how far that is.

CREATE TABLE events (
  -- The order of their publication: of one plugin the order they were committed in.
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id   uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
  plugin_id  text NOT NULL,
  type       text COLLATE "C" NOT NULL,
  -- JSON as it was published: text, so that no number loses digits.
  data       text NOT NULL,
  request_id text NOT NULL,
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
