-- Frontends delivered with plugins (service.md 1, 4.7): a ZIP that belongs to a version, and who may open it.

-- {sha256, packed_bytes, files, bytes}; null when the version has none.
ALTER TABLE plugin_versions ADD COLUMN frontend jsonb;

ALTER TABLE plugins ADD COLUMN frontend_access text NOT NULL DEFAULT 'public'
  CHECK (frontend_access IN ('public', 'session'));
