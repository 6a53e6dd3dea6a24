import type { Locator, Page } from 'playwright-core';
import t from 'tap';
import { EMAIL, PASSWORD, policySaved, startAdminBrowser } from '../../support/admin-browser.ts';
import { plugInAuthenticator } from '../../support/browser-authenticator.ts';
import { startGraphStore } from '../../support/graph.ts';
import { addDeadEntry } from '../../support/outbox.ts';
import { buildExample } from '../../support/sdk.ts';

const TABS_MAX = 80;
const FOCUSED_MS_MAX = 10_000;

const hasFocus = (target: Locator): Promise<boolean> =>
  target.evaluate((element: unknown) => Reflect.get(Reflect.get(globalThis, 'document'), 'activeElement') === element);

/** Whether the focus has come into the dialog that an element is in; true for one in none. */
const isEntered = (target: Locator): Promise<boolean> =>
  target.evaluate((element: object) => {
    const call = (of: object, name: string, argument: unknown): unknown =>
      Reflect.apply(Reflect.get(of, name), of, [argument]);
    const dialog = call(element, 'closest', '[role=dialog]');
    const { activeElement } = Reflect.get(globalThis, 'document');
    return typeof dialog !== 'object' || dialog === null || call(dialog, 'contains', activeElement) === true;
  });

/** Presses Tab until an element has the focus, as someone without a mouse does. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor({ state: 'attached' });
  // A dialog takes the focus a moment after it is there, also from one of its buttons that had it by then.
  for (const end = Date.now() + FOCUSED_MS_MAX; !(await isEntered(target)) && Date.now() < end; )
    await page.waitForTimeout(20);
  for (let k = 0; k < TABS_MAX; k++) {
    if (await hasFocus(target)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${TABS_MAX} presses of Tab do not reach ${target}`);
}

/** Reaches an element with Tab, and presses Enter there. */
async function pressEnter(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Enter');
}

/** Waits until an element has the focus, which comes a moment after it is shown. @param key pressed until then, to move the focus */
async function untilFocused(page: Page, target: Locator, key?: string): Promise<void> {
  for (const end = Date.now() + FOCUSED_MS_MAX; !(await hasFocus(target)) && Date.now() < end; ) {
    if (key !== undefined) await page.keyboard.press(key);
    await page.waitForTimeout(20);
  }
}

/** Opens the palette, which takes letters once its field has the focus. */
async function openPalette(page: Page): Promise<void> {
  const field = page.getByPlaceholder('A screen, a plugin or a person');
  await page.keyboard.press('Control+k');
  await field.waitFor();
  await untilFocused(page, field);
}

t.test('a change of rights that was given up is delivered again with the keyboard alone', async t => {
  const { spicedb } = await startGraphStore(t);
  const env = { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TOKEN: 'any', BOT_SPICEDB_TLS: 'false' };
  const { errors, page } = await startAdminBrowser(t, {
    env,
    prepare: s => addDeadEntry(s.databaseUrl, 'faculty:f#dean@user:s-1'),
  });
  await pressEnter(page, page.getByRole('link', { name: 'Skip to content' }));
  t.ok(await hasFocus(page.getByRole('main')), 'one press of Enter leaves out the menu');
  await pressEnter(page, page.getByRole('link', { name: 'Retry or discard' }));
  const entry = page.getByRole('button', { name: /Adds relationships/ });
  await pressEnter(page, entry);
  const drawer = page.getByRole('dialog');
  await drawer.getByText('the store refused it').first().waitFor();
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  // It comes back a moment after the drawer has gone.
  await untilFocused(page, entry);
  t.ok(await hasFocus(entry), 'the focus is where it was');
  await page.keyboard.press('Enter');
  await pressEnter(page, drawer.getByRole('button', { name: 'Retry', exact: true }));
  await drawer.getByText('retried').waitFor();
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  await entry.waitFor({ state: 'detached' });
  t.same(errors, []);
});

t.test('from setup to the first call with the keyboard alone', async t => {
  // A field offers the newest before one has written something into it.
  const students = Array.from({ length: 20 }, (_, n) => ({ display_name: `Student ${n}` }));
  const people = [{ display_name: 'Grace' }, ...students];
  const { errors, open, page, s } = await startAdminBrowser(t, { loggedIn: false, people });
  const press = (target: Locator): Promise<void> => pressEnter(page, target);
  const write = async (target: Locator, text: string): Promise<void> => {
    await tabTo(page, target);
    await page.keyboard.type(text);
  };
  await write(page.getByLabel('Email'), EMAIL);
  await write(page.getByRole('textbox', { name: 'Password', exact: true }), PASSWORD);
  await write(page.getByRole('textbox', { name: 'Password again' }), PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByText('Install the first plugin').waitFor();

  await press(page.getByRole('link', { name: 'Upload a plugin' }));
  const chooser = page.waitForEvent('filechooser');
  await press(page.locator('main [role=button][tabindex="0"], main .mantine-Dropzone-root').first());
  const buffer = Buffer.from(await buildExample('guestbook'));
  await (await chooser).setFiles({ name: 'guestbook.wasm', mimeType: 'application/wasm', buffer });
  await press(page.locator('main').getByRole('button', { name: 'Upload', exact: true }).last());
  await press(page.getByRole('button', { name: 'Set it up', exact: true }));
  await write(page.getByRole('textbox', { name: 'moderator_key' }), 'a key of the moderator');
  const suggested = page.getByRole('radio', { name: /As its author suggests/ });
  await tabTo(page, page.getByRole('radio', { checked: true }).first());
  for (let k = 0; k < 3 && !(await suggested.isChecked()); k++) await page.keyboard.press('ArrowDown');
  await press(page.getByRole('button', { name: 'Install', exact: true }));
  await page.getByText('This makes it public').waitFor();
  await press(page.getByRole('button', { name: 'Open it to every caller' }));
  await page.getByText('Guestbook 1.0.0 runs').waitFor();
  await press(page.getByRole('button', { name: 'Call', exact: true }));
  await page.getByText('HTTP 200').waitFor();
  t.equal(await page.evaluate('document.activeElement.textContent'), 'Call', 'what was pressed keeps the focus');
  t.equal((await s.trigger('guestbook/entries')).status, 200);

  // The palette, and the menu of the account.
  await openPalette(page);
  await page.keyboard.type('audit');
  await page.getByRole('button', { name: 'Audit log' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Audit log', level: 1 }).waitFor();
  // A person is found and chosen in place of another; the palette opens from a field as well.
  await open('/admin/why?user=2');
  const person = page.getByRole('combobox', { name: 'Person' });
  await write(person, '');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('Grace');
  await page.getByRole('option', { name: /Grace/ }).waitFor();
  t.equal(await page.getByRole('option').count(), 1, 'the person chosen before is not offered for another name');
  await page.keyboard.press('Enter');
  await page.getByText(/^(Yes|No): Grace/).waitFor();
  await tabTo(page, person);
  // Enter opens what the service finds, also when it is pressed before the answer is there.
  await openPalette(page);
  await page.keyboard.type('guestb');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Guestbook', level: 1 }).waitFor();
  await press(page.getByRole('button', { name: 'Your account' }));
  const logOut = page.getByRole('menuitem', { name: 'Log out' });
  await logOut.waitFor();
  await untilFocused(page, logOut, 'ArrowDown');
  t.ok(await hasFocus(logOut));
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
  t.same(errors, []);
});

t.test('a policy is written with completion, compared, saved and restored with the keyboard alone', async t => {
  const { errors, open, page } = await startAdminBrowser(t, {
    sample: true,
    people: [{ display_name: 'Grace', external_id: 's-1906' }],
  });
  await open('/admin/plugins/hello/triggers/greet');
  const editor = page.locator('.cm-content');
  const write = async (text: string, completed: string): Promise<void> => {
    await tabTo(page, editor);
    await page.keyboard.press('Control+A');
    await page.keyboard.type(text);
    await page.locator('.cm-tooltip-autocomplete').getByText(completed).first().waitFor();
    // The editor takes a key that comes sooner for one of the text.
    await page.waitForTimeout(100);
    await page.keyboard.press('Enter');
  };
  const save = async (): Promise<void> => {
    await pressEnter(page, page.getByRole('button', { name: 'Save', exact: true }));
    await policySaved(page);
  };
  await write('user.loc', 'locale');
  await page.keyboard.type(' == "en"');
  await page.keyboard.press('Escape');
  t.equal(await editor.textContent(), 'user.locale == "en"');
  await pressEnter(page, page.getByRole('button', { name: 'Compare with what is saved' }));
  await page.getByText('2 lose access').waitFor();
  await save();
  // Ids are found by the names of what they stand for.
  await write('user.external_id == "grac', 'Grace');
  t.equal(await editor.textContent(), 'user.external_id == "s-1906"');
  await write('has_ro', 'has_role');
  await page.keyboard.type('dean');
  await page.keyboard.press('Escape');
  t.equal(await editor.textContent(), 'has_role("dean")');
  await save();
  await pressEnter(page, page.getByRole('button', { name: 'History' }));
  const before = page
    .getByRole('dialog')
    .getByRole('row')
    .filter({ hasNot: page.locator('ins') });
  await pressEnter(page, before.getByRole('button', { name: 'Restore' }));
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  t.equal(await editor.textContent(), 'user.locale == "en"');
  t.same(errors, []);
});

/** Presses arrows until an element has the focus, as within tabs and menus. */
async function arrowTo(page: Page, target: Locator, key: 'ArrowRight' | 'ArrowDown'): Promise<void> {
  await target.waitFor();
  for (let k = 0; k < TABS_MAX && !(await hasFocus(target)); k++) await page.keyboard.press(key);
}

/** Types into a field, waits for an option below it, goes to it with the arrows and takes it. */
async function choose(page: Page, field: Locator, typed: string, option: string): Promise<void> {
  await tabTo(page, field);
  if (typed === '') await page.keyboard.press('Enter');
  else await page.keyboard.type(typed);
  const offered = page.getByRole('option').filter({ hasText: option }).first();
  await offered.waitFor();
  const isAt = async (): Promise<boolean> => (await offered.getAttribute('data-combobox-selected')) !== null;
  // A list that has just opened may forget what was gone to; then one goes there again.
  for (let k = 0; k < TABS_MAX && (await offered.isVisible()); k++) {
    if (!(await isAt()) || k > 0) await page.keyboard.press('ArrowDown');
    if (!(await isAt())) continue;
    await page.keyboard.press('Enter');
    await offered.waitFor({ state: 'detached', timeout: 1000 }).catch(() => {});
  }
  await offered.waitFor({ state: 'detached' });
}

t.test('people, relationships, keys and administrators with the keyboard alone', async t => {
  const { spicedb } = await startGraphStore(t);
  const { errors, page } = await startAdminBrowser(t, {
    env: { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TOKEN: 'any', BOT_SPICEDB_TLS: 'false' },
    sample: true,
    people: [{ display_name: 'Grace', external_id: 's-1906' }],
  });
  const press = (target: Locator): Promise<void> => pressEnter(page, target);
  const write = async (target: Locator, text: string): Promise<void> => {
    await tabTo(page, target);
    await page.keyboard.type(text);
  };
  const check = async (target: Locator): Promise<void> => {
    await tabTo(page, target);
    await page.keyboard.press('Space');
    t.ok(await target.isChecked());
  };
  const tab = async (name: string): Promise<void> => {
    await tabTo(page, page.getByRole('tab', { selected: true }));
    await arrowTo(page, page.getByRole('tab', { name, exact: true }), 'ArrowRight');
  };
  /** Opens a screen by the palette. */
  const goTo = async (name: string): Promise<void> => {
    await openPalette(page);
    await page.keyboard.type(name);
    await page.getByRole('dialog').getByRole('button', { name }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name, level: 1 }).waitFor();
  };
  const main = page.locator('main');
  const dialog = page.getByRole('dialog');
  /** The secret of a key that was made, and the way on. */
  const secret = async (): Promise<string> => {
    const text = (await dialog.locator('pre').first().textContent()) ?? '';
    await press(dialog.getByRole('button', { name: 'I have stored it' }));
    await dialog.waitFor({ state: 'detached' });
    return text;
  };

  await goTo('People');
  await write(main.getByRole('searchbox'), 'grac');
  await press(main.getByRole('link', { name: 'Grace' }));
  await page.getByRole('heading', { name: 'Grace', level: 1 }).waitFor();
  await tab('Roles');
  await write(main.getByRole('combobox', { name: 'Role' }), 'tutor');
  await press(main.getByRole('button', { name: 'Give a role' }));
  await page.getByRole('row', { name: /tutor/ }).waitFor();

  await goTo('Relationships');
  await tab('Add');
  await choose(page, main.getByRole('combobox', { name: 'Type of object' }), '', 'Faculty');
  await write(main.getByRole('combobox', { name: 'Object', exact: true }), 'physics');
  await choose(page, main.getByRole('combobox', { name: 'Relation', exact: true }), '', 'dean');
  await choose(page, main.getByRole('combobox', { name: 'Person', exact: true }), 'grac', 'Grace');
  await press(main.getByRole('button', { name: 'Add', exact: true }));
  // The faculty is in no data of the university.
  await press(dialog.getByRole('button', { name: 'Add it all the same' }));
  await page.getByRole('status').getByText('faculty:physics#dean@user:s-1906').waitFor();
  t.equal(
    await main.getByRole('combobox', { name: 'Person', exact: true }).inputValue(),
    '',
    'ready for the next person',
  );
  await tab('All');
  const filter = main.getByRole('combobox', { name: 'Person', exact: true });
  await choose(page, filter, 'grac', 'Grace');
  await page.waitForURL(/subject=s-1906/);
  t.ok(await hasFocus(filter), 'a filter that was chosen keeps the focus');
  await page.getByRole('row', { name: /Grace.*physics/ }).waitFor();

  await goTo('Service keys');
  await press(main.getByRole('button', { name: 'Make a service key' }).first());
  await dialog.waitFor();
  await write(dialog.getByRole('textbox', { name: 'Name' }), 'timetable');
  const adding = dialog.getByRole('combobox', { name: 'Add a plugin' });
  await choose(page, adding, 'hel', 'Hello');
  t.ok(await hasFocus(adding), 'the field that was used keeps the focus');
  t.equal(await adding.inputValue(), '', 'and is ready for the next plugin');
  await check(dialog.getByRole('checkbox', { name: 'greet', exact: true }));
  await press(dialog.getByRole('button', { name: 'Make a service key' }));
  t.match(await secret(), /^phk_/);
  await page.getByRole('row', { name: /timetable/ }).waitFor();

  await goTo('Administration keys');
  await press(main.getByRole('button', { name: 'Make a key' }).first());
  await dialog.waitFor();
  await write(dialog.getByRole('textbox', { name: 'Name' }), 'monitoring');
  await check(dialog.getByRole('checkbox', { name: 'Read everything but people' }));
  await press(dialog.getByRole('button', { name: 'Make a key' }));
  t.match(await secret(), /^pha_/);
  await press(page.getByRole('button', { name: 'Rotate monitoring' }));
  await press(dialog.getByRole('button', { name: 'Rotate', exact: true }));
  t.match(await secret(), /^pha_/);

  await goTo('Administrators');
  await press(main.getByRole('button', { name: 'Appoint an administrator' }));
  await dialog.waitFor();
  await choose(page, dialog.getByRole('combobox', { name: 'Person' }), 'grac', 'Grace');
  await write(dialog.getByRole('textbox', { name: 'Email' }), 'grace@uni.example');
  await check(dialog.getByRole('checkbox', { name: 'Auditor' }));
  await press(dialog.getByRole('button', { name: 'Appoint', exact: true }));
  await dialog.waitFor({ state: 'detached' });
  await press(page.getByRole('button', { name: 'More actions: Grace' }));
  await arrowTo(page, page.getByRole('menuitem', { name: 'Change what they may do' }), 'ArrowDown');
  await page.keyboard.press('Enter');
  await check(dialog.getByRole('checkbox', { name: 'Operator' }));
  await press(dialog.getByRole('button', { name: 'Save' }));
  await page
    .getByRole('row', { name: /grace@uni\.example/ })
    .getByText('Operator', { exact: true })
    .last()
    .waitFor();
  t.same(errors, []);
});

t.test('a second factor is added, logs in and is taken away with the keyboard alone', async t => {
  const { errors, open, page } = await startAdminBrowser(t);
  await plugInAuthenticator(page);
  const press = (target: Locator): Promise<void> => pressEnter(page, target);
  const dialog = page.getByRole('dialog');
  await open('/admin/account');
  await press(page.getByRole('button', { name: 'Add a passkey' }));
  await tabTo(page, page.getByLabel('Name of the passkey'));
  await page.keyboard.press('Control+A');
  await page.keyboard.type('Key ring');
  await page.keyboard.press('Enter');
  await dialog.waitFor();
  const code = (await dialog.locator('code').first().textContent()) ?? '';
  await press(dialog.getByRole('button', { name: 'I have kept them' }));
  await page.getByText('10 are left').waitFor();
  const logOut = async (): Promise<void> => {
    await press(page.getByRole('button', { name: 'Your account' }));
    await arrowTo(page, page.getByRole('menuitem', { name: 'Log out' }), 'ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
  };
  await logOut();
  await tabTo(page, page.getByLabel('Email'));
  await page.keyboard.type(EMAIL);
  await tabTo(page, page.getByRole('textbox', { name: 'Password' }));
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press('Enter');
  await press(page.getByRole('button', { name: 'Use a passkey' }));
  await page.locator('header').waitFor();
  await logOut();
  await press(page.getByRole('button', { name: 'Log in with a passkey' }));
  await page.locator('header').waitFor();
  await logOut();
  await press(page.getByRole('button', { name: 'Log in with a recovery code' }));
  await tabTo(page, page.getByLabel('Recovery code'));
  await page.keyboard.type(code);
  await page.keyboard.press('Enter');
  await page.getByText('9 are left').waitFor();
  await press(page.getByRole('button', { name: 'Remove the passkey Key ring' }));
  await press(dialog.getByRole('button', { name: 'Remove', exact: true }));
  // A recovery code is no recent password.
  const again = page.getByRole('dialog', { name: 'Confirm that it is you' });
  await tabTo(page, again.getByRole('textbox', { name: 'Password' }));
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByText('You have none yet').waitFor();
  t.same(errors, []);
});
