-- Expands: a release before this one runs on.
-- Messages that failed, and those of a request, among millions that were sent.
CREATE INDEX outgoing_messages_failed ON outgoing_messages (id) WHERE state IN ('failed', 'uncertain');
CREATE INDEX outgoing_messages_request ON outgoing_messages (request_id);
