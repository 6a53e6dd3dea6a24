-- A suspension after crashes is about one version (0: a trigger, whatever the version). `callers`: whose failures counted.

ALTER TABLE plugin_quarantine
  ADD COLUMN version_id bigint NOT NULL DEFAULT 0,
  ADD COLUMN callers integer NOT NULL DEFAULT 0;

UPDATE plugin_quarantine q SET version_id = p.installed_version_id
FROM plugins p
WHERE p.id = q.plugin_id AND q.trigger_name = '' AND p.installed_version_id IS NOT NULL;

ALTER TABLE plugin_quarantine
  DROP CONSTRAINT plugin_quarantine_pkey,
  ADD PRIMARY KEY (plugin_id, trigger_name, version_id);
