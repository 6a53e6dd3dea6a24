import t from 'tap';
import { readMigrations } from '../../src/db/migrate.ts';

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
