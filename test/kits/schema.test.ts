import fs from 'node:fs';
import path from 'node:path';
import { Ajv } from 'ajv';
import t from 'tap';
import { SCHEMAS, schemaPath } from '../../sdk/schema/generate.ts';
import { parseManifest } from '../../src/plugins/manifest.ts';
import { readProject } from '../../src/projects/project.ts';
import { request, startTestService } from '../support/service.ts';

/** The JSON Schemas of what authors write say what the program says. */

const ROOT = path.resolve(import.meta.dirname, '../..');
const ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false, allErrors: true });
const validatorOf = (name: string) => ajv.compile(JSON.parse(fs.readFileSync(schemaPath(name), 'utf8')));
const isManifest = validatorOf('manifest.json');
const isProject = validatorOf('plugin-host.json');

for (const [name, text] of Object.entries(SCHEMAS))
  t.test(`sdk/schema/${name} is what the code gives`, async t => {
    t.ok(fs.readFileSync(schemaPath(name), 'utf8') === text(), `sdk/schema/${name} is old: run npm run schema`);
    t.notMatch(text(), '"$ref"', 'an editor needs no other file');
  });

const [, example = ''] = /```json\n([\s\S]+?)```/.exec(fs.readFileSync(path.join(ROOT, 'docs/abi.md'), 'utf8')) ?? [];
const GOOD = JSON.parse(example);
const { access, ...trigger } = GOOD.triggers[0];
const withTrigger = (change: object): object => ({ ...GOOD, triggers: [{ ...trigger, ...change }] });
const withRequirement = (change: object): object => ({ ...GOOD, requirements: [{ kind: 'kv', ...change }] });
const reason = 'a reason';

const RIGHT: Record<string, object> = {
  'the example of docs/abi.md': GOOD,
  'the words of the kits': withTrigger({ type: 'TriggerHTTP' }),
  'no more than an id, a name and a version': { id: 'a', name: 'A', version: '1' },
  'a member of a later version': { ...GOOD, color: 'red' },
  'a start that runs once': { ...GOOD, start: 'once' },
  'access for users with a policy': withTrigger({ access: { users: true, policy: 'true', reason } }),
};
const WRONG: Record<string, object> = {
  'no id': { ...GOOD, id: undefined },
  'an id with capitals': { ...GOOD, id: 'Visits' },
  'a version that is a number': { ...GOOD, version: 1 },
  'a protocol of a later release': { ...GOOD, abi: 99 },
  'another start': { ...GOOD, start: 'twice' },
  'an unknown requirement': withRequirement({ kind: 'mail' }),
  'a plugin dependency without a target': withRequirement({ kind: 'plugins:call' }),
  'a field without a name': withRequirement({ config: [{ description: 'x' }] }),
  'an unknown type of trigger': withTrigger({ type: 'timer' }),
  'a trigger without a path': withTrigger({ path: undefined }),
  'a path without a slash': withTrigger({ path: 'visits' }),
  'a trigger without methods': withTrigger({ methods: [] }),
  'an unknown method': withTrigger({ methods: ['FETCH'] }),
  'access without a reason': withTrigger({ access: { public: true } }),
  'access for none': withTrigger({ access: { reason } }),
  'public access with a policy': withTrigger({ access: { public: true, policy: 'true', reason } }),
  'public access and users': withTrigger({ access: { public: true, users: true, reason } }),
  'an unknown member of access': withTrigger({ access: { ...access, groups: true } }),
};

t.test('a manifest is right for the schema when it is right for the host', async t => {
  for (const [what, given] of [...Object.entries(RIGHT), ...Object.entries(WRONG)]) {
    const text = JSON.stringify(given);
    const isRight = what in RIGHT;
    t.equal(isManifest(JSON.parse(text)), isRight, `${what}: ${ajv.errorsText(isManifest.errors)}`);
    t.equal(parseManifest(text).ok, isRight, what);
  }
});

t.test('each member has a description', async t => {
  const missing: string[] = [];
  const visit = (schema: unknown, where: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    if ('properties' in schema && typeof schema.properties === 'object' && 'type' in schema)
      for (const [name, member] of Object.entries(schema.properties ?? {}))
        if (!('description' in member) && name !== 'type') missing.push(`${where}/${name}`);
    for (const [name, part] of Object.entries(schema)) visit(part, `${where}/${name}`);
  };
  for (const [name, text] of Object.entries(SCHEMAS)) visit(JSON.parse(text()), name);
  t.same(missing, []);
});

/** Every `plugin-host.json` of the kits. */
const projects = fs
  .readdirSync(path.join(ROOT, 'sdk'), { recursive: true, encoding: 'utf8' })
  .filter(file => /^\w+\/(templates\/common|examples\/\w+)\/plugin-host\.json$/.test(file));

t.test('plugin-host.json of the templates and samples is right, and wrong ones are refused', async t => {
  t.ok(projects.length > 20, projects.join(', '));
  for (const file of projects) {
    const text = fs.readFileSync(path.join(ROOT, 'sdk', file), 'utf8');
    t.ok(isProject(JSON.parse(text)), `${file}: ${ajv.errorsText(isProject.errors)}`);
  }
  const good = { $schema: './kit/schema/plugin-host.json', lang: 'ts', entry: 'index.ts', dev: { config: { a: 1 } } };
  const folder = t.testdir({ 'index.ts': '' });
  const read = (value: object): void => {
    fs.writeFileSync(path.join(folder, 'plugin-host.json'), JSON.stringify(value));
    readProject(folder);
  };
  t.ok(isProject(good), ajv.errorsText(isProject.errors));
  t.doesNotThrow(() => read(good));
  const wrong = [{ lang: 'cobol' }, { entry: '' }, { entri: 'index.ts' }, { dev: { port: 1 } }, { frontend: 7 }];
  for (const change of wrong) {
    t.notOk(isProject({ ...good, ...change }), JSON.stringify(change));
    t.throws(() => read({ ...good, ...change }), JSON.stringify(change));
  }
});

t.test('a running service serves the schemas', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  for (const [name, text] of Object.entries(SCHEMAS)) {
    const answer = await request(`${s.base}/kits/schema/${name}`);
    t.match([answer.status, answer.headers.get('content-type')], [200, /^application\/schema\+json/]);
    t.equal(answer.text, text());
    const headers = { 'if-none-match': answer.headers.get('etag') ?? '' };
    t.equal((await request(`${s.base}/kits/schema/${name}`, { headers })).status, 304);
  }
});
