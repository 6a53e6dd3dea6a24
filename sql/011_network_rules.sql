-- Where a version of a plugin may send requests (service.md 2.1 HTTP; security.md "Requests to inside").
ALTER TABLE plugin_versions ADD COLUMN network jsonb NOT NULL DEFAULT '{"hosts": [], "private": []}';
COMMENT ON COLUMN plugin_versions.network IS
  'hosts: the only ones it may reach (empty: every public one), like api.example.org, *.example.org or either with :port; private: ranges inside it may reach';
