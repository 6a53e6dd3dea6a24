import t from 'tap';
import { goTo, screenIsShown, startAdminBrowser } from '../../support/admin-browser.ts';
import { MORE_VIEWS, SCREENS } from '../screens.ts';

/** All screens: they can be read and reached in both languages, in both colour schemes, on any width. */

/** Those that `first-plugin.ts` looks at in English on its way. */
const SEEN = new Set([
  '/admin/',
  '/admin/plugins/upload',
  '/admin/plugins/hello',
  '/admin/plugins/hello?tab=access',
  '/admin/plugins/hello/triggers/greet',
  '/admin/why?user=1&plugin=hello&trigger=greet',
]);

/** Screens whose rows and filters have another order on a tablet. */
const WIDE = new Set([
  '/admin/',
  '/admin/plugins/hello?tab=access',
  '/admin/relationships',
  '/admin/university',
  '/admin/people',
  '/admin/audit',
]);

/** Further tabs of screens, of the person and the plugin that are here. */
const TABS = MORE_VIEWS.filter(view =>
  /^\/admin\/(university|outbox|events|system|roles|relationships|people.*)\?/.test(view),
).map(view => view.replace('/people/5', '/people/1'));

/** The pages of those who log in, which are opened by their address. */
const PAGES = ['/account/', '/messengers/'];

for (const [language, colorScheme, width, screens, isLoaded] of [
  ['en-GB', 'light', 1280, SCREENS.filter(s => !SEEN.has(s)), true],
  ['ru-RU', 'dark', 320, [...SCREENS, ...TABS, ...PAGES], false],
  ['ru-RU', 'light', 768, SCREENS.filter(s => WIDE.has(s)), false],
] as const)
  t.test(`every screen in ${language}, ${colorScheme}, ${width} pixels wide`, async t => {
    const { axe, context, errors, open, page } = await startAdminBrowser(t, {
      colorScheme,
      language,
      sample: true,
      width,
    });
    const look = async (screen: string): Promise<void> => {
      t.same(await axe(), [], `axe: ${screen}`);
      t.notOk(
        await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth'),
        `${screen} is not wider than the window`,
      );
      if (language === 'ru-RU')
        t.match(await page.locator('main').textContent(), /[а-яё]{3}/i, `${screen} is in Russian`);
    };
    for (const screen of screens) {
      // Each address alone leads to its screen; once is enough for that.
      if (isLoaded || screen === '/admin/no-such-screen' || PAGES.includes(screen))
        await open(screen).then(() => screenIsShown(page));
      else await goTo(page, screen);
      await look(screen);
    }
    await context.clearCookies();
    await open('/admin/').then(() => page.locator('input[type=email]').waitFor());
    await look('the login');
    t.same(errors, []);
  });
