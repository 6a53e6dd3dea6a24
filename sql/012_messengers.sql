-- Messengers (service.md 2.6, 5.6; decisions.md 6): what came in, what goes out, and which accounts belong to users.

-- Every update is stored before it is answered. Its row is handled in one transaction with the replies it led to.
CREATE TABLE messenger_updates (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel     text NOT NULL,
  -- The channel's own id: a repeated one is dropped.
  update_id   text COLLATE "C" NOT NULL,
  chat_id     text COLLATE "C" NOT NULL,
  -- As it came: text, for messages may hold what jsonb does not take.
  payload     text NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now(),
  attempts    int NOT NULL DEFAULT 0,
  handled_at  timestamptz,
  outcome     text NOT NULL DEFAULT '',
  UNIQUE (channel, update_id)
);
CREATE INDEX messenger_updates_open ON messenger_updates (channel, chat_id, id) WHERE handled_at IS NULL;
CREATE INDEX messenger_updates_age ON messenger_updates (received_at);

-- Chats somebody has written from: the only ones plugins may write to.
CREATE TABLE messenger_chats (
  channel    text NOT NULL,
  chat_id    text COLLATE "C" NOT NULL,
  is_private boolean NOT NULL,
  seen_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (channel, chat_id)
);
CREATE INDEX messenger_chats_id ON messenger_chats (chat_id);

-- Accounts of messengers that users have linked with a one-time code; `chat_id` is the private chat with that account.
CREATE TABLE messenger_accounts (
  channel        text NOT NULL,
  account_id     text COLLATE "C" NOT NULL,
  global_user_id bigint NOT NULL REFERENCES global_users (id) ON DELETE CASCADE,
  chat_id        text COLLATE "C" NOT NULL,
  linked_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (channel, account_id),
  UNIQUE (global_user_id, channel)
);

-- One code of a user at a time.
CREATE TABLE messenger_link_codes (
  global_user_id bigint PRIMARY KEY REFERENCES global_users (id) ON DELETE CASCADE,
  code_sha256    bytea NOT NULL UNIQUE,
  expires_at     timestamptz NOT NULL
);

-- Wrong codes of the last minutes, by account.
CREATE TABLE messenger_link_failures (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel    text NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  failed_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX messenger_link_failures_of ON messenger_link_failures (channel, account_id, failed_at);

-- Messages on their way out. A message with files is sent in several parts; `parts_sent` of them have arrived.
CREATE TABLE outgoing_messages (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel    text NOT NULL,
  chat_id    text COLLATE "C" NOT NULL,
  -- Null: the host itself answers.
  plugin_id  text,
  source     text NOT NULL CHECK (source IN ('reply', 'notify_user', 'notify_chat', 'notify_students', 'host')),
  user_id    bigint,
  message    jsonb NOT NULL,
  request_id text NOT NULL,
  -- Names what is to be sent once, however often the execution behind it is repeated.
  once_key   text COLLATE "C" UNIQUE,
  -- Answers come before what many are told.
  urgent     boolean NOT NULL,
  state      text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'sending', 'sent', 'failed', 'uncertain')),
  parts_sent int NOT NULL DEFAULT 0,
  attempts   int NOT NULL DEFAULT 0,
  next_at    timestamptz NOT NULL DEFAULT now(),
  last_error text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at   timestamptz
);
CREATE INDEX outgoing_messages_open ON outgoing_messages (channel, chat_id, id) WHERE state IN ('queued', 'sending');
CREATE INDEX outgoing_messages_due ON outgoing_messages (channel, urgent DESC, next_at, id) WHERE state = 'queued';
CREATE INDEX outgoing_messages_plugin ON outgoing_messages (plugin_id, id DESC);
CREATE INDEX outgoing_messages_ended ON outgoing_messages (ended_at) WHERE ended_at IS NOT NULL;

-- A file that came in a message belongs to its chat, as `CHANNEL:chat`: only there the plugin reads it.
ALTER TABLE files ADD COLUMN chat text COLLATE "C";
