import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import { parseTrustedKey } from '../../src/config/trusted-key.ts';
import { openDatabase } from '../../src/db/database.ts';
import {
  checkSignature,
  frontendNote,
  makeSigningKeys,
  readSignature,
  SIGNATURE_SECTION,
  signModule,
} from '../../src/plugins/module-signature.ts';
import { sha256Of } from '../../src/plugins/module-storage.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { MAIN, runCommand } from '../support/commands.ts';
import { type Json, request, startTestService, TOKEN } from '../support/service.ts';
import { okPlugin } from '../support/wat.ts';
import { rawZip } from '../support/zip.ts';

/** Modules that their authors have signed (docs/plugins.md "Signatures"). */

const lineOf = (file: string): string => file.split('\n')[1] ?? '';
const author = makeSigningKeys();
const stranger = makeSigningKeys();
const signed = (module: Uint8Array, keys = author, comment = 'file:p.wasm'): Uint8Array => {
  const made = signModule(module, keys.secret, comment);
  if (made === undefined) throw new Error('the key is refused');
  return made;
};
const TRUSTED = { BOT_PLUGINS_TRUSTED_KEYS: `press-office=${lineOf(author.public)}` };

t.test('the review says who signed a module, and a changed one is refused', async t => {
  const s = await startTestService(TRUSTED);
  t.teardown(() => s.stop());
  const signatureOf = async (module: Uint8Array): Promise<Json> => {
    const { json, status, text } = await s.upload(module);
    if (status !== 201) throw new Error(text);
    return json.signature as Json;
  };
  const module = okPlugin('fine');
  t.same(await signatureOf(module), { state: 'none', key_id: null, signer: null, comment: null });
  t.same(await signatureOf(signed(module)), {
    state: 'trusted',
    key_id: author.id,
    signer: 'press-office',
    comment: 'file:p.wasm',
  });
  t.same(await signatureOf(signed(module, stranger)), {
    state: 'unknown',
    key_id: stranger.id,
    signer: null,
    comment: null,
  });
  t.same(signed(signed(module, stranger)), signed(module), 'a signature that it had is replaced');

  // The version text of the manifest has another digit.
  const changed = Buffer.from(signed(module));
  changed.write('1.0.1', changed.indexOf('1.0.0'));
  t.match((await s.upload(changed)).json, {
    code: 'module_refused',
    findings: [{ rule: 'signature', message: /the module was changed after it was signed/ }],
  });
  const comment = Buffer.from(signed(module));
  comment.write('file:q.wasm', comment.indexOf('file:p.wasm'));
  t.match((await s.upload(comment)).json, { findings: [{ rule: 'signature' }] }, 'its comment is signed too');
  const behind = Buffer.concat([signed(module), Buffer.from([0, 2, 1, 0x61])]);
  t.match((await s.upload(behind)).json, { findings: [{ rule: 'signature', message: /is not the last section/ }] });
});

t.test('where signatures are required only modules of trusted keys are installed', async t => {
  const s = await startTestService({ ...TRUSTED, BOT_PLUGINS_REQUIRE_SIGNATURE: 'true' });
  t.teardown(() => s.stop());
  const install = async (module: Uint8Array) => {
    const { json } = await s.upload(module);
    return await s.admin('POST', `/plugins/${String(json.id)}/install`, { wasm_key: json.wasm_key });
  };
  t.match((await install(okPlugin('plain'))).json, {
    status: 422,
    detail: /is not signed; plugins\.require_signature asks for one of: press-office/,
    errors: [{ pointer: '/wasm_key', code: 'not_accepted' }],
  });
  t.match((await install(signed(okPlugin('strange'), stranger))).json, {
    detail: /which is none of plugins\.trusted_keys/,
  });
  t.equal((await install(signed(okPlugin('fine')))).status, 200);
  await t.test('with the frontend they come with', async t => {
    const zip = rawZip([{ name: 'index.html', data: Buffer.from('<p>signed</p>') }]);
    const other = rawZip([{ name: 'index.html', data: Buffer.from('<p>another</p>') }]);
    const note = frontendNote(sha256Of(zip));
    const withPages = async (module: Uint8Array, pages: Uint8Array) => {
      const form = new FormData();
      form.append('file', new Blob([new Uint8Array(module)]), 'p.wasm');
      form.append('frontend', new Blob([new Uint8Array(pages)]), 'f.zip');
      const headers = { authorization: `Bearer ${TOKEN}` };
      const sent = { method: 'POST', headers, body: form };
      const { json } = await request(`${s.base}/api/admin/plugins/upload`, sent);
      return await s.admin('POST', '/plugins/paged/install', { wasm_key: json.wasm_key });
    };
    const module = signed(okPlugin('paged'), author, `p ${note}`);
    t.match((await withPages(signed(okPlugin('paged')), zip)).json, {
      status: 422,
      detail: /has a frontend that its signature does not name; sign the module with --frontend/,
    });
    t.match((await withPages(module, other)).json, { status: 422, detail: /does not name/ });
    t.equal((await withPages(module, zip)).status, 200);
  });
  const kept = await s.admin('DELETE', '/plugins/fine');
  t.equal(kept.status, 204);
  const [gone] = (await s.admin('GET', '/uninstalled')).json.items as Json[];
  await s.admin('POST', `/uninstalled/${String(gone?.wasm_key)}/restore`);
  const again = await s.admin('POST', '/plugins/fine/install', { wasm_key: gone?.wasm_key });
  t.equal(again.status, 200, 'a version that was uninstalled keeps its signature');

  // Another host of the database that trusts other keys.
  const other = await startTestService(
    { BOT_PLUGINS_REQUIRE_SIGNATURE: 'true', BOT_PLUGINS_TRUSTED_KEYS: `other=${lineOf(stranger.public)}` },
    s,
  );
  t.teardown(() => other.stop());
  t.equal((await other.trigger('fine/run')).status === 404, false, 'what is installed goes on');
  const next = await other.upload(signed(okPlugin('fine')));
  const wanted = { wasm_key: next.json.wasm_key };
  t.match((await other.admin('POST', '/plugins/fine/install', wanted)).json, {
    detail: /signed by the key \w+, which is none of plugins\.trusted_keys/,
  });
  const configured = await other.admin('POST', '/plugins/fine/install', { wasm_key: gone?.wasm_key });
  t.equal(configured.status, 200, 'what is installed can be configured');
  const newer = await s.admin('POST', '/plugins/fine/install', {
    wasm_key: (await s.upload(signed(okPlugin('fine'), author, 'another'))).json.wasm_key,
  });
  t.equal(newer.status, 200);
  const back = await other.admin('POST', '/plugins/fine/rollback', { wasm_key: gone?.wasm_key });
  t.match(back.json, { detail: /which is none of plugins\.trusted_keys/ }, 'a rollback runs no other keys either');

  const [paged] = (await s.admin('GET', '/plugins/paged/versions')).json.items as Json[];
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  // As after the loss of the key of stored secrets.
  await db.query('UPDATE plugin_versions SET installed_at = NULL');
  const pages = new FormData();
  pages.append('file', new Blob([rawZip([{ name: 'index.html', data: Buffer.from('<p>unsigned</p>') }])]), 'f.zip');
  const put = await request(`${s.base}/api/admin/plugins/paged/versions/${String(paged?.wasm_key)}/frontend`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${TOKEN}` },
    body: pages,
  });
  t.match(put.json, { status: 409, detail: /this version was installed and cannot be changed/ });
});

t.test('an author makes keys and signs at a terminal', async t => {
  const folder = t.testdir({});
  const at = (name: string): string => path.join(folder, name);
  fs.writeFileSync(at('p.wasm'), okPlugin('fine'));
  const run = (...args: string[]) => runCommand(['plugin', ...args]);
  t.match(await run('keygen', at('press')), { code: 0, out: /trust this key:.*plugins\.trusted_keys: \["press=RW/ });
  t.equal(fs.statSync(at('press.key')).mode & 0o777, 0o600);
  // Lists of the configuration are handed to the serving processes with commas between.
  t.match(await run('keygen', at('Smith, J.')), { code: 0, out: /trusted_keys: \["Smith-J\.=RW/ });
  t.equal(parseTrustedKey(`Smith, J.=${fs.readFileSync(at('press.pub'), 'utf8').split('\n')[1]}`), undefined);
  t.match(await run('keygen', at('press')), { code: 1, err: /press\.key exists already/ });
  t.match(await run('sign', at('p.wasm'), '--key', at('press.key'), '--comment', 'p 1.0.0'), {
    code: 0,
    out: /is signed: p 1\.0\.0/,
  });
  t.match(await run('sign', at('p.wasm'), '--key', at('press.pub')), { code: 1, err: /is no secret key/ });
  t.match(await run('sign', at('press.pub'), '--key', at('press.key')), { code: 1, err: /is not a WebAssembly file/ });
  const zip = rawZip([{ name: 'index.html', data: Buffer.from('x') }]);
  fs.writeFileSync(at('f.zip'), zip);
  t.match(await run('sign', at('p.wasm'), '--key', at('press.key'), '--frontend', at('f.zip')), {
    code: 0,
    out: new RegExp(`is signed: file:p\\.wasm timestamp:\\d+ frontend:${sha256Of(zip)}`),
  });
  t.match(await run('sign', at('p.wasm'), '--key', at('press.key'), '--frontend', at('press.pub')), {
    code: 1,
    err: /is not a ZIP file/,
  });
  t.match(await run('inspect', at('p.wasm')), { code: 0, out: /signature: claims the key [0-9A-F]{16};/ });
  t.match(await run('sign', at('p.wasm'), '--key', at('press.key'), '--comment', 'a\u0007'), {
    code: 1,
    err: /--comment must be one line of at most 8000 characters, without control characters/,
  });
});

t.test('a module that cannot be written whole when it is signed stays as it was', t => {
  const folder = t.testdir({});
  const file = path.join(folder, 'p.wasm');
  const module = withCustomSection(okPlugin('large'), 'padding', new Uint8Array(8192));
  fs.writeFileSync(file, module, { mode: 0o600 });
  fs.symlinkSync(file, path.join(folder, 'link.wasm'));
  fs.writeFileSync(path.join(folder, 'p.key'), author.secret);
  const sign = (before: string) =>
    spawnSync(
      'sh',
      ['-c', `${before} exec "$0" "$@"`, process.execPath, MAIN, 'plugin', 'sign', 'link.wasm', '--key', 'p.key'],
      // What V8 compiles would be cut as well.
      { cwd: folder, encoding: 'utf8', env: { ...BARE_ENV, NODE_COMPILE_CACHE: '' } },
    );
  const refused = sign('ulimit -f 8;');
  t.match(refused, { status: 1, stderr: /link\.wasm cannot be written: / });
  t.ok(fs.readFileSync(file).equals(module), 'every byte');
  t.same(fs.readdirSync(folder).sort(), ['link.wasm', 'p.key', 'p.wasm'], 'and nothing next to it');
  t.match(sign(''), { status: 0 });
  t.ok(fs.lstatSync(path.join(folder, 'link.wasm')).isSymbolicLink());
  const read = readSignature(fs.readFileSync(file));
  t.ok(read !== null && typeof read !== 'string', 'the file behind the link is signed');
  t.equal(fs.statSync(file).mode & 0o777, 0o600);
  t.end();
});

/** What minisign 0.11 wrote: `minisign -G -W`, then `minisign -S -H` over a module without sections. */
const MINISIGN = {
  public: 'RWQYlpQatxDW0CwbJ69b2jExeT8b0TWpIDuIIIrc1sYvHt0azmqlzS4r',
  secret: `untrusted comment: minisign encrypted secret key
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAGJaUGrcQ1tCy+w4Gvkb9TVizsa5S0u82QH0zdD2LD6NGT/7GoJbFNSwbJ69b2jExeT8b0TWpIDuIIIrc1sYvHt0azmqlzS4rAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
`,
  lines: [
    'RUQYlpQatxDW0H6d9R559A7GvzAhO9iE5Ex35GuOg4pHO7uZpGvJwW8an3AjE7r8LIuwzooSgLca+FN9rnfZ+aEpdeuPa9n2rgc=',
    'trusted comment: timestamp:1795753726\tfile:empty.wasm\thashed',
    'LWnlYFuAwAhaiD7Coky7Kz9WaAociMk3hcEyktMd1E+raOFZdiV/t8cZmLE3PBHg8Xou5M8kwLEpbVe6db1iDQ==',
  ],
};

t.test('a signature is read and made as minisign reads and makes it', async t => {
  const module = Buffer.from('\0asm\x01\0\0\0', 'latin1');
  const comment = 'timestamp:1795753726\tfile:empty.wasm\thashed';
  const [keys, id] = [[parseTrustedKey(`press=${MINISIGN.public}`)].filter(k => k !== undefined), 'D0D610B71A949618'];
  const text = ['untrusted comment: signature from minisign secret key', ...MINISIGN.lines, ''].join('\n');
  const read = readSignature(withCustomSection(module, SIGNATURE_SECTION, Buffer.from(text)));
  if (read === null || typeof read === 'string') throw new Error(`not read: ${read}`);
  t.same(checkSignature(read, keys), { state: 'trusted', keyId: id, signer: 'press', comment });
  const made = readSignature(signModule(module, MINISIGN.secret, comment) ?? module);
  if (made === null || typeof made === 'string') throw new Error(`not made: ${made}`);
  t.same(made.text.split('\n').slice(1, 4), MINISIGN.lines);
});
