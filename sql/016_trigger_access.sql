-- A trigger without settings lets logged-in users in. Triggers that were installed before this migration were public
-- without settings: they keep that, written down.

INSERT INTO plugin_trigger_settings (plugin_id, trigger_name, allow_user_session)
SELECT DISTINCT v.plugin_id, t.value ->> 'name', false
  FROM plugin_versions v CROSS JOIN LATERAL jsonb_array_elements(v.manifest -> 'triggers') AS t (value)
 WHERE v.installed_at IS NOT NULL AND t.value ->> 'type' = 'http'
ON CONFLICT (plugin_id, trigger_name) DO NOTHING;

ALTER TABLE plugin_trigger_settings ALTER COLUMN allow_user_session SET DEFAULT true;

-- A service key names its triggers; `*` stands for all triggers of the plugin, those of later versions as well.
UPDATE service_key_scopes SET trigger_name = '*' WHERE trigger_name = '';
ALTER TABLE service_key_scopes ADD CHECK (trigger_name <> '');
