import t from 'tap';
import { parseManifest } from '../../src/plugins/manifest.ts';
import { TriggerRoutes } from '../../src/plugins/trigger-routes.ts';

/** Names of commands, and paths of triggers as requests are written (docs/plugins.md "Manifest", docs/messengers.md "Commands"). */

const commands = (...names: string[]) =>
  parseManifest(
    JSON.stringify({
      id: 'names',
      name: 'Names',
      version: '1.0.0',
      abi: 5,
      requirements: [],
      triggers: names.map(name => ({ name, type: 'messenger' })),
    }),
  );

t.test('commands that users cannot tell apart, or that the service answers itself, are refused', async t => {
  t.equal(commands('menu', 'seats').ok, true);
  t.match(commands('Menu', 'menu'), {
    ok: false,
    errors: [{ pointer: '/triggers/1/name', message: /"menu" and "Menu" are the same command/ }],
  });
  for (const name of ['start', 'link', 'unlink', 'Help'])
    t.match(commands(name), {
      ok: false,
      errors: [{ message: new RegExp(`/${name} is a command of the service itself`) }],
    });
});

t.test('two paths that are one when they are asked for are refused', async t => {
  const http = (name: string, path: string) => ({ name, type: 'http', path, methods: ['GET'] });
  const both = { id: 'p', name: 'P', version: '1.0.0', abi: 5, requirements: [] };
  const triggers = [http('a', '/gr%65et/%c3%a9'), http('b', '/greet/%C3%A9')];
  t.match(parseManifest(JSON.stringify({ ...both, triggers })), { ok: false, errors: [{ pointer: /^\/triggers\/1/ }] });
});

t.test('no parameter has a name that objects of JavaScript keep for themselves', async t => {
  const trigger = { name: 'a', type: 'http', path: '/of/:__proto__', methods: ['GET'] };
  const text = JSON.stringify({ id: 'p', name: 'P', version: '1.0.0', abi: 5, requirements: [], triggers: [trigger] });
  t.match(parseManifest(text), { ok: false, errors: [{ message: /does not begin with two underscores/ }] });
});

t.test('a path is found however its letters are encoded', async t => {
  const trigger = (path: string) =>
    ({ trigger: { name: path, type: 'http', description: '', path, methods: ['GET'] }, target: path }) as const;
  const routes = new TriggerRoutes(
    [trigger('/%7Ewho'), trigger('/caf%c3%a9')].map(r => ({
      trigger: { ...r.trigger, methods: [...r.trigger.methods] },
      target: r.target,
    })),
  );
  for (const [asked, found] of [
    ['/~who', '/%7Ewho'],
    ['/caf%C3%A9', '/caf%c3%a9'],
    ['/caf%c3%a9', '/caf%c3%a9'],
  ] as const)
    t.match(routes.match('GET', asked), { kind: 'found', target: found }, asked);
});
