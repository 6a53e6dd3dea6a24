import type { BrowserContext, Page } from 'playwright-core';
import { openDatabase } from '../src/db/database.ts';
import { addUserToken } from '../src/identity/user-tokens.ts';
import { startBrowser } from '../test/support/browser.ts';
import { type Account, makeCaller } from './caller.ts';
import { embeddedDatabaseUrl, startHost } from './host.ts';
import { add } from './report.ts';

const PEOPLE = 30_000;
const RELATIONSHIPS = 1_000_000;
const GROUP_SIZE = 30;
const STREAMS = 2000;
/** People whom the change of the policy lets in. */
const EXAMINERS = 412;
/** One of them. */
const PERSON = { id: 'person-17017', name: 'Zoya Karimova' };
const GREET = '/api/triggers/http/hello/greet';
const BEFORE = 'has_role("dean")';
const AFTER = 'has_role("dean") || is_member("global_role", "examiners")';
const SHOWN_MS_MAX = 120_000;
const FILLED_MS_MAX = 600_000;

/** A university as a term leaves it: everyone in a group and a teacher of streams, streams below programs, departments and faculties. */
const FILLINGS: ReadonlyArray<[sql: string, values: unknown[]]> = [
  [
    `INSERT INTO global_users (external_id, display_name, locale)
     SELECT 'person-' || n, CASE WHEN 'person-' || n = $2 THEN $3 ELSE 'Person ' || md5(n::text) END, 'ru'
     FROM generate_series(1, $1::int) n`,
    [PEOPLE, PERSON.id, PERSON.name],
  ],
  [
    `INSERT INTO authz_tuples (resource_type, resource_id, relation, subject_type, subject_id, origin, outbox_id)
     SELECT 'study_group', 'g' || n / $2::int, 'member', 'user', 'person-' || n, 'import', 1 FROM generate_series(1, $1::int) n
     UNION ALL SELECT 'study_group', 'g' || n, 'parent', 'stream', 's' || n % $4::int, 'import', 1 FROM generate_series(0, $1::int / $2::int) n
     UNION ALL SELECT 'stream', 's' || n, 'parent', 'program', 'p' || n / 20, 'import', 1 FROM generate_series(0, $4::int - 1) n
     UNION ALL SELECT 'program', 'p' || n, 'parent', 'department', 'd' || n / 4, 'import', 1 FROM generate_series(0, $4::int / 20 - 1) n
     UNION ALL SELECT 'department', 'd' || n, 'parent', 'faculty', 'f' || n / 5, 'import', 1 FROM generate_series(0, $4::int / 80 - 1) n
     UNION ALL SELECT 'global_role', 'examiners', 'member', 'user', 'person-' || (n * 41 % $1::int + 1), 'manual', 1 FROM generate_series(1, $3::int) n`,
    [PEOPLE, GROUP_SIZE, EXAMINERS - 1, STREAMS],
  ],
  [
    `INSERT INTO authz_tuples (resource_type, resource_id, relation, subject_type, subject_id, origin, outbox_id)
     VALUES ('global_role', 'examiners', 'member', 'user', $1, 'manual', 1)`,
    [PERSON.id],
  ],
  [
    `INSERT INTO authz_tuples (resource_type, resource_id, relation, subject_type, subject_id, origin, outbox_id)
     SELECT 'stream', 's' || (n / $2::int * 7 + n % $2::int * 61) % $3::int, 'teacher', 'user', 'person-' || n % $2::int + 1, 'import', 1
     FROM generate_series(1, $1::int - (SELECT count(*)::int FROM authz_tuples)) n`,
    [RELATIONSHIPS, PEOPLE, STREAMS],
  ],
  [
    `INSERT INTO persons (external_id, last_name, first_name, email, channels, is_active, metadata)
     SELECT 'person-' || n, 'Person', md5(n::text), md5(n::text) || '@uni.example', '[]', true, '{}' FROM generate_series(1, $1::int) n`,
    [PEOPLE],
  ],
  ['ANALYZE', []],
];

/** Fills the database of a service that has ended or will start again: the embedded graph store takes from it at its start. */
async function fill(databaseUrl: string): Promise<string> {
  const db = openDatabase(databaseUrl, 1, () => {});
  try {
    for (const [sql, values] of FILLINGS) await db.query(sql, values);
    const { rows } = await db.query<{ id: string; tuples: string }>(
      'SELECT u.id, (SELECT count(*) FROM authz_tuples) AS tuples FROM global_users u WHERE u.external_id = $1',
      [PERSON.id],
    );
    const row = rows[0];
    if (row === undefined || Number(row.tuples) < RELATIONSHIPS) throw new Error(`not filled: ${JSON.stringify(row)}`);
    return (await addUserToken(db, 'pht_', { userId: Number(row.id), name: 'bench', expiresAt: null })).text;
  } finally {
    await db.close();
  }
}

type Story = { page: Page; statusOf(): Promise<number> };

async function openPage(context: BrowserContext, base: string, caller: Account): Promise<Page> {
  const cookies = caller.cookie.split('; ').map(pair => {
    const at = pair.indexOf('=');
    return { name: pair.slice(0, at), value: pair.slice(at + 1), url: base };
  });
  await context.addCookies(cookies);
  const page = await context.newPage();
  page.setDefaultTimeout(SHOWN_MS_MAX);
  await page.goto(`${base}/admin/people`);
  await page.locator('main table').waitFor();
  return page;
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}

function expectStatus(what: string, seen: number, wanted: number): void {
  if (seen !== wanted) throw new Error(`${what}: the call was answered ${seen} instead of ${wanted}`);
}

/** From a name to the reason why the person may not call. */
async function findAndAskWhy({ page, statusOf }: Story): Promise<void> {
  const link = page.getByRole('link', { name: PERSON.name });
  const found = await secondsOf(async () => {
    await page.getByLabel('Name, email or id').fill(PERSON.name.slice(0, 8));
    await link.waitFor();
  });
  add('a person by a part of the name, from the last key to the row', `${found.toFixed(2)} s`, {
    atMost: 1,
    unit: 's',
  });
  await link.click();
  await page.getByRole('tab', { name: 'May call' }).click();
  const row = page.getByRole('row').filter({ has: page.getByRole('cell', { name: 'greet', exact: true }) });
  await row.getByText('no', { exact: true }).waitFor();
  await row.getByRole('link', { name: 'Why?' }).click();
  await page.locator('main').getByText(BEFORE).first().waitFor();
  expectStatus('before the change', await statusOf(), 403);
}

async function takeCompletion(page: Page, label: string): Promise<void> {
  await page.locator('.cm-tooltip-autocomplete').getByText(label).first().waitFor();
  // The editor takes a key that comes sooner for one of the text.
  await page.waitForTimeout(100);
  await page.keyboard.press('Enter');
}

/** Writes the new policy with completion, sees who would gain, and saves. */
async function changePolicy({ page, statusOf }: Story, base: string): Promise<void> {
  await page.goto(`${base}/admin/plugins/hello/triggers/greet`);
  const editor = page.locator('.cm-content');
  await editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type(' || is_mem');
  await takeCompletion(page, 'is_member');
  // The cursor stands between the first quotes now.
  await page.keyboard.type('glob');
  await takeCompletion(page, 'global_role');
  for (const _ of '", "') await page.keyboard.press('ArrowRight');
  await page.keyboard.type('examiners');
  const written = (await editor.textContent()) ?? '';
  if (written !== AFTER) throw new Error(`the editor has ${written}`);
  await page.getByRole('button', { name: 'Compare with what is saved' }).click();
  const compared = await secondsOf(() => page.getByText(`${EXAMINERS} gain access`).waitFor());
  add(`the ${EXAMINERS} of ${PEOPLE} people who would gain access`, `${compared.toFixed(1)} s`);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  const saved = await secondsOf(() =>
    page.getByRole('button', { name: 'Save', exact: true, disabled: true }).waitFor(),
  );
  add('the policy saved', `${saved.toFixed(2)} s`);
  expectStatus('after the change', await statusOf(), 200);
}

async function restorePolicy({ page, statusOf }: Story): Promise<void> {
  await page.getByRole('button', { name: 'History' }).click();
  const revision = page
    .getByRole('dialog')
    .getByRole('row')
    .filter({ hasNotText: 'examiners' })
    .filter({ hasText: BEFORE });
  await revision.getByRole('button', { name: 'Restore' }).click();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  expectStatus('after the restore', await statusOf(), 403);
}

/** Waits until the graph store has what was filled in. */
async function graphIsFilled(port: number, { cookie }: Account): Promise<void> {
  const question = `resource_type=global_role&resource_id=examiners&permission=is_member&user=${PERSON.id}`;
  for (const end = Date.now() + FILLED_MS_MAX; Date.now() < end; ) {
    const answer = await fetch(`http://127.0.0.1:${port}/api/admin/relationships/lookup?${question}`, {
      headers: { cookie },
    });
    const text = await answer.text();
    if (answer.status === 200 && text.includes('"allowed":true')) return;
    if (answer.status !== 200 && answer.status !== 503) throw new Error(text);
    await new Promise(resolve => setTimeout(resolve, 200));
  }
  throw new Error('the graph store is not filled');
}

/**
 * What an owner does, in a browser, at a university of 30,000 people and 1,000,000 relationships: finds a person, asks
 * why they may not call, changes the policy, sees who would gain, saves, and brings the old policy back. The person calls after
 * each step.
 */
export async function people(directory: string): Promise<void> {
  const first = await startHost(directory);
  const caller = await makeCaller(first.port);
  const policy = { allow_user_session: true, policy_expression: BEFORE };
  const set = await caller.post('/api/admin/plugins/hello/triggers/greet/settings', policy, 'PUT');
  if (set.status !== 200) throw new Error(await set.text());
  const token = await fill(embeddedDatabaseUrl(first.data));
  await first.stop();
  const host = await startHost(directory);
  const browser = await startBrowser();
  try {
    add(`start with ${RELATIONSHIPS} relationships`, `${(host.startMs / 1000).toFixed(1)} s`);
    await graphIsFilled(host.port, caller);
    const base = `http://localhost:${host.port}`;
    const page = await openPage(await browser.newContext({ locale: 'en-GB' }), base, caller);
    const headers = { authorization: `Bearer ${token}` };
    const statusOf = async (): Promise<number> => (await fetch(`${base}${GREET}`, { headers })).status;
    const story = { page, statusOf };
    await findAndAskWhy(story);
    await changePolicy(story, base);
    await restorePolicy(story);
  } finally {
    await browser.close();
    await host.stop();
  }
}
