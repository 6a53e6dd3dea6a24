-- Expands: a release before this one runs on.
-- Files of all plugins are listed too, the newest first, and those of one user.
CREATE INDEX files_newest ON files (number DESC) WHERE state <> 'deleted';
CREATE INDEX files_user ON files (user_id, number DESC) WHERE state <> 'deleted' AND user_id IS NOT NULL;
-- What each plugin holds, without the rows of its users.
CREATE INDEX file_usage_plugins ON file_usage (plugin_id) WHERE user_id = -1;
