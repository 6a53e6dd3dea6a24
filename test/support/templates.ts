import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { endBuilds } from '../../src/projects/build-project.ts';
import { tryTemplate } from './author.ts';
import { makeDatabase } from './database.ts';
import { messengerWorld } from './messenger-world.ts';
import { missingToolchain } from './toolchains.ts';

/** What `plugin new` makes builds and passes its own tests. */

const TEMPLATES = ['http', 'messenger', 'files', 'sql'];

/** `plugin test` has no database, so the notes are kept by a service. */
async function keepsNotes(t: Test, module: Uint8Array): Promise<void> {
  const [{ s, user }, database] = [await messengerWorld(t), await makeDatabase()];
  t.teardown(() => database.drop());
  await s.install(module, { databases: { notes: database.url } }, 'default');
  const { token } = await user('Ada');
  const headers = { Authorization: `Bearer ${token}` };
  const added = await s.trigger('new-sql/notes', { method: 'POST', headers, body: 'купить чай' });
  t.match(added, { status: 200, json: { notes: [{ text: 'купить чай' }] } });
  const other = { Authorization: `Bearer ${(await user('Grace')).token}` };
  t.same((await s.trigger('new-sql/notes', { headers: other })).json, { notes: [] });
}

/**
 * Tests all templates of a language, and a sample with the files a folder that begins with it must have. They cannot be
 * built without the toolchain of the language: then they are left out, which the last lines of the run say.
 */
export function testTemplates(lang: string, sample?: { name: string; files: readonly string[] }): void {
  const skip = missingToolchain(lang) ?? false;
  for (const template of TEMPLATES)
    t.test(
      `the template ${template} in ${lang} builds, passes its tests and would be accepted by an upload`,
      { skip },
      async t => {
        const { module } = await tryTemplate(t, lang, template);
        if (template === 'sql') await keepsNotes(t, module);
      },
    );
  if (sample !== undefined)
    t.test(
      `a plugin in ${lang} that begins with the sample ${sample.name} has its own id and name`,
      { skip },
      async t => {
        const { folder, manifest } = await tryTemplate(t, lang, sample.name, 'rooms-2');
        t.match(manifest, { id: 'rooms-2', name: 'Rooms 2' });
        for (const file of sample.files) t.ok(fs.existsSync(path.join(folder, file)), file);
        const project = JSON.parse(fs.readFileSync(path.join(folder, 'plugin-host.json'), 'utf8'));
        t.equal(project.frontend, sample.name === 'filebox' ? 'frontend' : undefined);
        if (lang === 'go') t.match(fs.readFileSync(path.join(folder, 'go.mod'), 'utf8'), /^module rooms-2\n/);
      },
    );
  t.teardown(endBuilds);
}
