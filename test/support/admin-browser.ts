import fs from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import t from 'tap';
import { startBrowser } from './browser.ts';
import { CookieJar } from './identity-provider.ts';
import { buildExample } from './sdk.ts';
import { type Answer, request, startTestService, type TestService, TOKEN } from './service.ts';

export const EMAIL = 'ada@uni.example';
export const PASSWORD = 'seven brown owls at noon';
const FIRST = { email: EMAIL, password: PASSWORD, name: 'Ada' };
const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Generous: the stories of three files run at once on a busy machine. */
const SHOWN_MS_MAX = 60_000;
const WAITING = '.mantine-Loader-root, [aria-busy=true]';

type Test = { teardown(fn: () => unknown): void };

export type BrowserWindow = {
  page: Page;
  context: BrowserContext;
  browser: Browser;
  /** What the browser said went wrong: errors of scripts, and what the policy of the page forbids. */
  errors: string[];
  /** Opens a screen. */
  open(path: string): Promise<void>;
  /** Serious findings of axe on what is shown now. */
  axe(): Promise<string[]>;
};
export type AdminBrowser = BrowserWindow & { s: TestService };

export type WindowOptions = { language?: string; colorScheme?: 'light' | 'dark'; width?: number };

export type AdminBrowserOptions = WindowOptions & {
  /** Whether there is an administrator, who is logged in; otherwise the setup link is open. */
  loggedIn?: boolean;
  env?: Record<string, string>;
  /** Whether the sample plugin is installed. */
  sample?: boolean;
  /** What is done before there is an administrator. */
  prepare?(s: TestService): Promise<unknown>;
  /** Users that are there. */
  people?: Array<{ display_name: string; external_id?: string }>;
};

let running: Promise<Browser> | null = null;

/** One browser for a whole file; a story has a window with cookies and storage of its own. */
function sharedBrowser(): Promise<Browser> {
  if (running === null) {
    const started = startBrowser();
    t.teardown(async () => (await started).close());
    running = started;
  }
  return running;
}

/** A service and a browser that shows its administration pages. */
export async function startAdminBrowser(test: Test, options: AdminBrowserOptions = {}): Promise<AdminBrowser> {
  const { loggedIn = true } = options;
  const s = await startTestService(options.env);
  test.teardown(() => s.stop());
  if (options.sample === true) await s.install(await buildExample('hello'));
  await options.prepare?.(s);
  for (const person of options.people ?? []) await s.admin('POST', '/users', person);
  const made = loggedIn ? await s.admin('POST', '/auth/setup', FIRST) : null;
  return { s, ...(await openWindow(test, s.base, made, options)) };
}

/** A browser for a service that runs as a process of its own and has no administrator yet: makes the first one and logs in. */
export async function startBrowserAt(test: Test, base: string, options: WindowOptions = {}): Promise<BrowserWindow> {
  const made = await request(`${base}/api/admin/auth/setup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify(FIRST),
  });
  if (made.status !== 200) throw new Error(made.text);
  return await openWindow(test, base, made, options);
}

/** @param made the answer of the setup, whose session the window has; null when no administrator is logged in */
async function openWindow(test: Test, at: string, made: Answer | null, options: WindowOptions): Promise<BrowserWindow> {
  const { colorScheme = 'light', language = 'en-GB', width = 1280 } = options;
  const browser = await sharedBrowser();
  const context = await browser.newContext({
    ...{ locale: language, colorScheme, viewport: { width, height: 900 } },
    // What fades in has less contrast meanwhile.
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  test.teardown(() => context.close());
  page.setDefaultTimeout(SHOWN_MS_MAX);
  const errors = errorsOf(page);
  // The browser keeps pages apart only on an origin it trusts.
  const base = at.replace('127.0.0.1', 'localhost');
  const open = async (path: string): Promise<void> => void (await page.goto(`${base}${path}`));
  if (made !== null) await context.addCookies(cookiesOf(made.headers, base));
  await open(made === null ? `/admin/#token=${TOKEN}` : '/admin/');
  if (made !== null) await page.locator('header').waitFor();
  return { page, context, browser, errors, open, axe: () => findingsOf(page) };
}

/** What the browser says went wrong from now on. */
function errorsOf(page: Page): string[] {
  const errors: string[] = [];
  page.on('pageerror', error => errors.push(error.message));
  page.on('console', message => {
    if (message.type() !== 'error') return;
    // What the API refuses is shown in the page.
    if (message.text().startsWith('Failed to load resource')) return;
    errors.push(message.text());
  });
  return errors;
}

async function findingsOf(page: Page): Promise<string[]> {
  // Half a megabyte, and a document keeps it.
  if (!(await page.evaluate('typeof window.axe === "object"'))) await page.evaluate(`${AXE}; null`);
  const found: unknown = await page.evaluate(
    `(async () => { const r = await window.axe.run({ resultTypes: ['violations'] }); return r.violations
      .filter(v => v.impact === 'serious' || v.impact === 'critical')
      .map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ') + ' ' + n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')).slice(0, 3).join(', ')); })()`,
  );
  return Array.isArray(found) ? found.map(String) : [];
}

/** The cookies an answer sets, as a browser keeps them. */
const cookiesOf = (
  headers: Headers,
  url: string,
): Array<{ name: string; value: string; url: string; httpOnly: boolean }> =>
  headers.getSetCookie().map(line => {
    const [pair = '', ...attributes] = line.split(';');
    const at = pair.indexOf('=');
    return {
      ...{ name: pair.slice(0, at), value: pair.slice(at + 1), url },
      httpOnly: attributes.some(a => a.trim().toLowerCase() === 'httponly'),
    };
  });

/** Waits until a screen is there with what it has read. Each frame is looked at: a locator looks twice a second. */
export async function screenIsShown(page: Page): Promise<void> {
  await page.evaluate(`new Promise((resolve, reject) => {
    const end = performance.now() + ${SHOWN_MS_MAX};
    const look = () => {
      if (document.querySelector('h1, h2') !== null && document.querySelector('${WAITING}') === null) resolve(null);
      else if (performance.now() > end) reject(new Error('the screen is not there: ' + document.body.innerText));
      else requestAnimationFrame(look);
    };
    look();
  })`);
}

const ELSEWHERE = '/admin/elsewhere';

/** Goes to a screen that is there within the page, as links do, which is far less work than to load the page again; waits until it is there. */
export async function goTo(page: Page, path: string): Promise<void> {
  // By way of an address without a screen: what is shown then is not what was shown before.
  await page.evaluate(`new Promise((resolve, reject) => {
    const end = performance.now() + ${SHOWN_MS_MAX};
    const show = (path, isShown) => {
      history.pushState(null, '', path);
      return new Promise(done => {
        const look = () => {
          if (isShown()) done();
          else if (performance.now() > end) reject(new Error(path + ' is not shown: ' + document.body.innerText));
          else requestAnimationFrame(look);
        };
        look();
      });
    };
    const heading = () => document.querySelector('main h1')?.textContent;
    const isElsewhere = () => document.querySelector('main').textContent.includes('${ELSEWHERE}');
    show('${ELSEWHERE}', isElsewhere).then(() => {
      const nothing = heading();
      return show(${JSON.stringify(path)}, () => heading() !== undefined && heading() !== nothing);
    }).then(resolve);
  })`);
  await screenIsShown(page);
}

/** Logs the administrator in without a browser. @returns the cookies of the session, as a header */
export async function sessionOf({ base }: TestService): Promise<Record<string, string>> {
  const jar = new CookieJar();
  const login = await request(`${base}/api/admin/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: EMAIL, password: PASSWORD }),
  });
  if (login.status !== 200) throw new Error(login.text);
  jar.take(login.headers);
  return jar.header;
}

/** Fills in the login form, and waits for the screen at the address. */
export async function logIn(page: Page, email: string, password: string): Promise<void> {
  await page.locator('input[type=email]').fill(email);
  await page.locator('input[type=password]').fill(password);
  await page.locator('button[type=submit]').click();
  await page.locator('header').waitFor();
}

/** Waits until the policy that was sent is saved: there is nothing more to save then. */
export async function policySaved(page: Page): Promise<void> {
  const save = page.getByRole('button', { name: 'Save', exact: true }).first();
  await save.and(page.locator(':disabled:not([data-loading])')).waitFor();
}

/** Logs out by the menu, and waits for the login form. */
export async function logOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Your account' }).click();
  await page.getByRole('menuitem', { name: 'Log out' }).click();
  await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
}
