import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { migrate, migrationStates, readMigrations } from '../../src/db/migrate.ts';
import { makeDatabase } from '../support/database.ts';

/**
 * Every database that exists was made by exactly these files, and a service refuses to start on one whose files have changed:
 * what is to be different is a new file at the end.
 */
const RELEASED: ReadonlyArray<readonly [name: string, sha256: string]> = [
  ['001_plugins.sql', '92d04cc7d287a25233987d6b9ab86ec27978151d3a3701fb3bb92147f432dbfb'],
  ['002_trace_ids.sql', 'e29de4cd9bc36fc31ef66e9e45314357c34cdf5404bf25625bc9595c10b9a612'],
  ['003_identity.sql', '05b0d6c90dc060045b1026a7612aa273fb8d10f6a93acf0472ffff6e2ea92d47'],
  ['004_audit_and_mail.sql', '6c41beaa25c437b364856c048a2963d6384a03cb98f0c47f7b682f9da7880bcd'],
  ['005_trace_indexes.sql', 'bb9cfa8a6e7e7f09ffcfaa0c87b2384de5c83dad8aac6a86731182674b3ee6b7'],
  ['006_mail_request.sql', '4e54820d979e95e423920b2b1687743a0c752c889f20f2e4c3204ff1e24585d3'],
  ['007_authorization.sql', '8ff9b3590ab5dd87d896656786c7c39fd5a7651a53a714df78f01ce8725c78a0'],
  ['008_files.sql', '1d3dbbd2e3cdfc94219568023e25f3327511b8358ae22212354926fc16e8ed1a'],
  ['009_frontends.sql', '4f3c4c9ef4247e2c955b1738753c6b4849573d85a00b1fde2b892b5fef7085bf'],
  ['010_university.sql', 'd650eb954a78aada8d563131e6918d828e0c6d2856467d245ab965866cec0c88'],
  ['011_network_rules.sql', '104db94ff429c45b903dc0273cd826285a2d3a448a927f0230e890d200646c8d'],
  ['012_messengers.sql', 'd1798b410bff71a07f053fa2c964da17b65bec90659d6b654cfd820cb1be8804'],
  ['013_events.sql', '5c6f4f11764cd0b7c90e0c4e65994f1c4abac0aebcf7e90b2bce9645fdaee43e'],
  ['014_kv_atomic.sql', '387a72609454a6fd5856af631688ef0486f178dc8b46ee15195d11c951c13257'],
  ['015_admin_keys.sql', 'e08d79e1904ab1e10339463550d289512f4cf1e2baf385c049c0bc3293fc9c7b'],
  ['016_trigger_access.sql', 'f30dfb96c119f7ed66c6e991af666ba7d77bedb671615bdc892dbaaa2dc64f83'],
  ['017_restores_and_clocks.sql', '9a583048d5948af2a47b909a53a50f239a4ce7e58e05dec39652b5e719d4b3f5'],
  ['018_login.sql', '332a456796305bb3b391ac8e8ac7a628d9c14140922a2659ebc9cf81ebc420f9'],
  ['019_kept_versions.sql', '03f9b0f772cf84a7e51f11f229b72b821842d895022f821b9bed12aae7fff159'],
  ['020_service_role.sql', '31239f3a8ce6299d16dbd595d964276fc69df931abfac71d2c637667de81513f'],
  ['021_suspensions.sql', '9b6bb35a5213b4ad1aa20d9a43952e9a862d03a86ec162f54381782bb52b9e2a'],
  ['022_browser_origin.sql', 'd9dc7317d27c57b978e4eaa5054f7043debde00167c39060003669ebe0bada49'],
  ['023_plugin_origin.sql', 'c5c55ecddf582e06a7e2c9ddb87217994e20812442e3c6ade254d2fd1b13cccb'],
  ['024_idempotent_requests.sql', '2e3d1a55badbc25778a88dd44a953468fba25551d886ae904afd32f32743eb27'],
  ['025_stored_contents.sql', 'ac16b468a0510b896ae122a1f6e1bc411d854afa61b650170795c9042a27705e'],
  ['026_hosts.sql', '7da77333308d879f05589df9e00930787f2c36408b3af41ccb32cc0f545b1424'],
  ['027_audit_retention.sql', '9fe1b4226e0a6e346ea024c1c38f9926b3676eb2337b8a80eb0ec1903b2ca9fe'],
  ['028_event_traces.sql', '2d9cf33286f712dc60cee3a430912d72ab746f25108dca18d1dc90e0a70bed77'],
  ['029_message_indexes.sql', '2f6d49394d327a248606e51088ca87a64374f1a89edaa3e4436e73970f0a110d'],
  ['030_execution_records.sql', 'ac3a987af8bc971aa0fa39f178d2b2434489cd6c658130f0ebf568d470aa81ed'],
  ['031_outbox_index.sql', '0ea18beed98bae4ea727c84a071516f8706824fbd596197b2daa2add357be358'],
  ['032_admin_roles.sql', '4c0c512914e27cab603a978219ee31eff5e54d63a8cbeca0b09f65b8407ba918'],
  ['033_second_factor.sql', 'd667f5dd90da196451d54aa28641512d3cc1d18cffd64c8c4746f28aba1778f3'],
  ['034_activity.sql', '1ee049a01411fbdfb6fc0abc3f2776ed5233d008cda94b6f8d11cc4bdbfc5378'],
  ['035_graph_comparisons.sql', 'ff7779d156ba7c22b5e65655cce5b3556bb569e444d38601810b37c2327cc9bf'],
  ['036_import_key_actor.sql', '5eae561a67c728b3f1b85297694054ea06cb076c97f3a375df3ae1f42142c17c'],
  ['037_suspension_reasons.sql', '2e7f7bb701838ceba960027cae4152d33912ef9496a9ebcaa5189fa5828d3cb2'],
  ['038_recordings.sql', '6fa5e70dab12eb43c9998f03a7c8ceff6673992efa9b8b5dbc08ed4592c54b02'],
  ['039_command_recordings.sql', '81f2be67b3e0b516396f018410536092533c4c55dd6bc8444b103d3792f7b40e'],
  ['040_audit_seals.sql', '8002afd5d19fd9c4a48952a501a2eda9dbe5bee521abe9626730df9f1d8c77f1'],
  ['041_audit_erasure.sql', 'ce3af22fd616da0b1da2ebc69cc88d16f4cafd84c0d3788c508e80a420e626e4'],
  ['042_execution_lists.sql', 'd8b382e57c1e89e1df8d9a28ad9f8ba316bb848daf517f2beb81b872d9512aec'],
  ['043_trigger_activity.sql', '9699998727bc7f4700a12b0866fe09b4cc6ebe3453ba5e8729480e7dd2856830'],
  ['044_module_signatures.sql', 'ac9fde7871701c5ca0274f1ad54eaa0047dce2eefeefc682244e56e79bf7a908'],
  ['045_all_files.sql', '330cca08609fca82e3a2c46180f955587e42979ef860d5f4569540f83c8f369b'],
  ['046_import_columns.sql', 'cb49c3ea1ce95fbf94d08b7df10a3cf021eb127f76af4ab6bd6d92770960883c'],
  ['047_import_ending.sql', '72dc4053fb68964b2118729b3ffc661a4f7c57f6c7b36e21e3c173d902ec7b86'],
  ['048_admin_key_rotation.sql', '2edeea0fffb505261812efbd215f0175166aa6cc0e7ee4e2acc5b7a669167df3'],
  ['049_passwordless_login.sql', 'ee03aba6683b5c72ea6e1fd4bea28c9763de9570d647c6ad476e6652853b4625'],
];

t.test('released migrations are unchanged, and new ones come after them', async t => {
  const found = readMigrations();
  t.same(
    found.map(m => [m.name, m.sha256]),
    RELEASED,
  );
  t.same(
    found.map(m => m.number),
    found.map((_, k) => k + 1),
  );
});

/** The first migration that has to say whether releases before it run on. */
const FIRST_WITH_KIND = 25;

/** What leaves releases before it working: new tables, indexes, columns that need no value. */
const ADDS = [
  /^CREATE (UNIQUE )?INDEX\b/,
  /^CREATE (UNLOGGED )?TABLE\b/,
  /^ALTER TABLE \w+ ALTER COLUMN \w+ SET STORAGE \w+$/,
  /^ALTER TABLE \w+ ADD COLUMN \w+ (?!.*\bNOT NULL\b(?!.*\bDEFAULT\b))[^,]*$/s,
  /^CREATE (OR REPLACE )?(FUNCTION|VIEW)\b/,
  /^INSERT INTO\b/,
];

/** The statements of a migration. */
const statementsOf = (sql: string): string[] =>
  sql
    .replace(/--.*$/gm, '')
    .replace(/\$\$.*?\$\$/gs, '$$$$')
    .split(/;\s*$/m)
    .map(s => s.trim())
    .filter(s => s !== '');

const ADDED_CHECK = /^ALTER TABLE (\w+) ADD CONSTRAINT (\w+)\s+CHECK \(\w+ IN \(([^)]*)\)\)$/;
const wordsIn = (list: string): string[] => [...list.matchAll(/'([^']*)'/g)].map(m => m[1] ?? '');

/** The statements by which a check of a migration before takes more words than it did, and none fewer. */
function wideningOf(sql: string, before: string): string[] {
  const statements = statementsOf(sql);
  return statements.flatMap(added => {
    const [, table = '', name = '', list = ''] = ADDED_CHECK.exec(added) ?? [];
    const dropped = `ALTER TABLE ${table} DROP CONSTRAINT ${name}`;
    if (name === '' || !statements.includes(dropped)) return [];
    const old = statementsOf(before)
      .map(s => ADDED_CHECK.exec(s))
      .filter(m => m?.[2] === name)
      .at(-1)?.[3];
    const words = wordsIn(list);
    return old !== undefined && wordsIn(old).every(w => words.includes(w)) ? [dropped, added] : [];
  });
}

/** The statements that a release of before may not survive. */
const contractingOf = (sql: string, before = ''): string[] => {
  const widening = wideningOf(sql, before);
  return statementsOf(sql).filter(s => !ADDS.some(p => p.test(s)) && !widening.includes(s));
};

t.test('a migration says whether releases before it run on, and one that says so only adds', async t => {
  const all = readMigrations();
  for (const { name, number, sql } of all.filter(m => m.number >= FIRST_WITH_KIND)) {
    t.match(
      sql,
      /^-- (Expands: a release before this one runs on\.|Contracts: since release [\d.]+ nothing uses \S.*)\n/,
      name,
    );
    const before = all.filter(m => m.number < number).map(m => m.sql);
    if (/^-- Expands/.test(sql))
      t.same(contractingOf(sql, before.join('\n')), [], `${name} (${number}) changes what is there`);
  }
  const changes = [
    'DROP TABLE plugins',
    'ALTER TABLE plugins DROP COLUMN enabled',
    'ALTER TABLE plugins RENAME COLUMN enabled TO active',
    'ALTER TABLE plugins ADD COLUMN owner text NOT NULL',
    'ALTER TABLE plugins ALTER COLUMN enabled TYPE text',
    'ALTER TABLE plugins ADD COLUMN a text, DROP COLUMN enabled',
    "UPDATE plugins SET enabled = false WHERE id = ''",
  ];
  for (const change of changes) t.same(contractingOf(`${change};\n`), [change]);
  const check = (words: string): string =>
    `ALTER TABLE plugins DROP CONSTRAINT c;\nALTER TABLE plugins ADD CONSTRAINT c\n  CHECK (kind IN (${words}));\n`;
  t.same(contractingOf(check("'a', 'b', 'c'"), check("'a', 'b'")), [], 'a check that takes one word more');
  t.equal(contractingOf(check("'a', 'c'"), check("'a', 'b'")).length, 2, 'a check that takes one word no longer');
  t.same(
    contractingOf("ALTER TABLE plugins ADD COLUMN owner text NOT NULL DEFAULT '';\nCREATE INDEX i ON plugins (owner);"),
    [],
  );
});

t.test('a release runs on a database that a newer one has only added to, and on no other', async t => {
  const database = await makeDatabase();
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  await db.query(
    "INSERT INTO schema_migrations (number, name, sha256, expands) VALUES (901, '901_adds.sql', 'x', true)",
  );
  t.same(await migrate(db), []);
  t.match((await migrationStates(db)).at(-1), { name: '901_adds.sql', state: 'unknown', expands: true });
  await db.query(
    "INSERT INTO schema_migrations (number, name, sha256, expands) VALUES (902, '902_drops.sql', 'x', false)",
  );
  await t.rejects(migrate(db), /the database has migration 902_drops\.sql, which this release does not know/);
});

t.test('a database that a release without this distinction migrated is brought up to date', async t => {
  const database = await makeDatabase();
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  await db.query(`ALTER TABLE schema_migrations DROP COLUMN expands;
    DELETE FROM schema_migrations WHERE number >= 25;
    DROP TABLE stored_content_parts, stored_contents, host_processes;
    DROP FUNCTION audit_log_remove_old; DROP INDEX audit_log_age, university_imports_age;
    DROP INDEX files_newest, files_user, file_usage_plugins, files_pending;
    ALTER TABLE events DROP COLUMN traceparent; DROP INDEX event_deliveries_dead, outgoing_messages_failed, outgoing_messages_request;
    DROP FUNCTION execution_records_keep; DROP VIEW all_executions; DROP TABLE execution_records;
    DROP INDEX authz_outbox_resolved; ALTER TABLE admin_credentials DROP COLUMN roles, DROP COLUMN plugins;
    DROP TABLE admin_passkeys, admin_totp, admin_recovery_codes, admin_challenges, activity, trigger_activity, graph_comparisons, import_columns, university_import_ending;
    ALTER TABLE university_import_types DROP COLUMN ending, DROP COLUMN active;
    ALTER TABLE plugin_quarantine DROP COLUMN reason, DROP COLUMN details;
    ALTER TABLE plugin_trigger_settings DROP COLUMN record; ALTER TABLE plugin_command_settings DROP COLUMN record;
    DROP FUNCTION audit_seal, audit_sum, audit_broken_seals; DROP TABLE audit_seals;
    DROP FUNCTION audit_erase_person, audit_names_person, audit_sum_of_parts, audit_actor_sum, audit_states_sum;
    ALTER TABLE admin_credentials DROP COLUMN passwordless_after;
    ALTER TABLE admin_keys DROP COLUMN old_secret_sha256, DROP COLUMN old_until, DROP COLUMN rotated_at;
    ALTER TABLE plugin_versions DROP COLUMN signature; ALTER TABLE uninstalled_versions DROP COLUMN signature;
    ALTER TABLE audit_log DROP COLUMN actor_salt, DROP COLUMN states_salt, DROP COLUMN actor_sha256, DROP COLUMN states_sha256`);
  const states = await migrationStates(db);
  t.same([...new Set(states.map(m => m.state))], ['applied', 'pending']);
  t.same(
    await migrate(db),
    states.filter(m => m.state === 'pending').map(m => m.name),
  );
  t.same(await migrate(db), []);
});

t.test('a migration that fails half way leaves the database as it was', async t => {
  const database = await makeDatabase();
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  // The table of 025 is gone and may be made again; that of 026 stands in the way.
  await db.query(`DELETE FROM schema_migrations WHERE number >= 25; DROP TABLE stored_content_parts, stored_contents`);
  await t.rejects(migrate(db), {
    message:
      /^migration 026_hosts\.sql failed: relation "host_processes" already exists; the database is as it was before/,
  });
  const { rows } = await db.query("SELECT to_regclass('stored_contents')::text AS name");
  t.same(rows, [{ name: null }]);
  t.equal((await migrationStates(db)).find(m => m.state === 'pending')?.name, '025_stored_contents.sql');
});
