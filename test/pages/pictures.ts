import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { startAdminBrowser } from '../support/admin-browser.ts';
import { startGraphStore } from '../support/graph.ts';
import { buildExample } from '../support/sdk.ts';
import type { TestService } from '../support/service.ts';
import { makeUniversity } from '../support/university.ts';
import { watPlugin } from '../support/wat.ts';
import { MORE_VIEWS, SCREENS } from './screens.ts';

/**
 * Pictures of every screen, to be looked at: `npm run admin:pictures`. They go to `tmp/pictures`, or to the folder in PICTURES;
 * ONLY is a part of the names of those to be made.
 */
const FOLDER = process.env.PICTURES ?? path.resolve(import.meta.dirname, '../../tmp/pictures');
const ONLY = process.env.ONLY ?? '';
const WIDTHS = [1440, 768, 320];
const LANGUAGES = ['en-GB', 'ru-RU'] as const;
const SCHEMES = ['light', 'dark'] as const;

const nameOf = (screen: string): string =>
  screen
    .replace(/^\/admin\/?/, '')
    .replace(/[^a-z0-9]+/gi, '-')
    .replace(/^-|-$/g, '') || 'overview';

/** A service that has been in use: a university, plugins that work and fail, something that waits for attention. */
async function furnish(s: TestService): Promise<void> {
  for (const [list, records] of Object.entries(makeUniversity({ seed: 7, groups: 4, students: 60, teachers: 8 })))
    await s.admin('POST', `/university/${list}`, records);
  await s.admin('POST', '/university/persons', [{ external_id: 'wrong' }]);
  await s.install(await buildExample('guestbook'), { moderator_key: 'geheim', title: 'Guests' });
  await s.install(await buildExample('booking'), {}, 'default');
  await s.install(watPlugin({ id: 'timetable', name: 'Timetable', handle: 'unreachable' }));
  await s.upload(await buildExample('weather'));
  for (let n = 0; n < 30; n++) {
    await s.trigger(`hello/greet?name=${n}`);
    await s.trigger('guestbook/entries', {
      method: 'POST',
      body: JSON.stringify({ name: `guest ${n}`, text: 'was here' }),
    });
  }
  for (const address of ['203.0.113.1', '203.0.113.2', '203.0.113.1', '203.0.113.2'])
    await s.trigger('timetable/run', { headers: { 'x-forwarded-for': address } });
  await s.admin('POST', '/service-keys', { name: 'timetable app', scopes: [{ plugin_id: 'hello', trigger: 'greet' }] });
  await s.admin('PUT', '/plugins/hello/triggers/greet/settings', {
    allow_user_session: true,
    policy_expression: 'has_role("tutor")',
  });
  await s.admin('POST', '/keys', { name: 'deployment', scopes: ['plugins:deploy'] });
}

type Browser = Awaited<ReturnType<typeof startAdminBrowser>>;

/** A picture of what is shown, at each width; nothing may be wider than the window. */
async function take(t: Test, { page }: Browser, folder: string, name: string): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    await page.getByRole('heading').first().waitFor();
    await page.locator('.mantine-Loader-root, [aria-busy=true]').first().waitFor({ state: 'detached' });
    await page.waitForLoadState('networkidle');
    // The navigation slides when the width has changed.
    const isSettled = 'document.getAnimations().every(a => a.playState !== "running")';
    while (!(await page.evaluate(isSettled))) await page.waitForTimeout(50);
    const target = path.join(FOLDER, `${folder}-${width}`);
    fs.mkdirSync(target, { recursive: true });
    await page.screenshot({ path: path.join(target, `${name}.png`), fullPage: true });
    const isWider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
    t.notOk(await page.evaluate(isWider), `${name} is not wider than ${width}`);
  }
}

for (const language of LANGUAGES)
  for (const colorScheme of SCHEMES)
    t.test(`pictures in ${language}, ${colorScheme}`, async t => {
      const folder = `${language.slice(0, 2)}-${colorScheme}`;
      const fresh = await startAdminBrowser(t, { colorScheme, language, loggedIn: false });
      if ('setup'.includes(ONLY)) await take(t, fresh, folder, 'setup');
      const { spicedb } = await startGraphStore(t);
      const env = {
        BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
        BOT_SPICEDB_TOKEN: 'any',
        BOT_SPICEDB_TLS: 'false',
        BOT_HTTP_TRUSTED_PROXIES: '127.0.0.1/32',
      };
      const used = await startAdminBrowser(t, { colorScheme, env, language, prepare: furnish, sample: true });
      for (const screen of [...SCREENS, ...MORE_VIEWS].filter(s => nameOf(s).includes(ONLY))) {
        await used.open(screen);
        await take(t, used, folder, nameOf(screen));
      }
      await used.context.clearCookies();
      await used.open('/admin/');
      await take(t, used, folder, 'login');
      t.same([...fresh.errors, ...used.errors], []);
    });
