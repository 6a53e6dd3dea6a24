import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';

/** Words: what texts cite is there, and they use plain ones. */
const root = path.resolve(import.meta.dirname, '..');
const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8');

const filesIn = (directory: string, ends: RegExp): string[] =>
  fs
    .readdirSync(path.join(root, directory), { recursive: true, encoding: 'utf8' })
    .map(f => path.join(directory, f))
    .filter(f => ends.test(f) && !f.includes('node_modules'));

const sources = ['bin', 'src', 'workers', 'test', 'sdk', 'examples', 'bench', 'admin'].flatMap(d =>
  filesIn(d, /\.(tsx?|js|go|rs|[ch])$/),
);
const pages = [
  ...filesIn('docs', /\.md$/),
  'README.md',
  'CHANGELOG.md',
  'bench/README.md',
  ...fs.readdirSync(path.join(root, 'examples')).map(plugin => `examples/${plugin}/README.md`),
  ...['assemblyscript', 'c', 'go', 'rust', 'typescript'].map(kit => `sdk/${kit}/README.md`),
];

/** Fenced code is no prose: what looks like a heading or a link in it is none. */
const proseOf = (page: string): string => read(page).replace(/^```[\s\S]*?^```/gm, '');

const headingsOf = (page: string): string[] => [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(m => m[1] ?? '');

/** The anchor of a heading, as the usual renderers of Markdown make it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');

t.test('a comment cites pages and headings that are there', async t => {
  let citations = 0;
  for (const file of sources)
    for (const [, page = '', heading] of read(file).matchAll(/\b(docs\/[\w-]+\.md)(?:\s+(?:\*\s+)?"([^"]+)")?/g)) {
      citations++;
      if (!fs.existsSync(path.join(root, page))) t.fail(`${file} cites ${page}, which is not there`);
      else if (heading !== undefined) t.ok(headingsOf(page).includes(heading), `${file} cites ${page} "${heading}"`);
    }
  t.ok(citations > 200, `${citations} citations were found`);
});

t.test('no text cites a page the repository does not hold', async t => {
  for (const file of [...sources, ...pages])
    for (const [page = ''] of read(file).matchAll(/(?<![\w/.(-])[a-z][a-z-]+\.md\b/g))
      t.ok(fs.existsSync(path.join(root, path.dirname(file), page)), `${file} names ${page}`);
});

t.test('links between pages lead somewhere', async t => {
  for (const page of pages)
    for (const [, target = ''] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file = '', anchor] = target.split('#');
      const to = file === '' ? page : path.join(path.dirname(page), file);
      if (!fs.existsSync(path.join(root, to))) t.fail(`${page} links to ${target}`);
      else if (anchor !== undefined) t.ok(headingsOf(to).map(anchorOf).includes(anchor), `${page} links to ${target}`);
    }
});

t.test('a page names files that are there', async t => {
  let names = 0;
  for (const page of pages)
    for (const [, file = ''] of read(page).matchAll(/`((?:src|workers|test|sdk|bench|sql)\/[\w./-]+\.[a-z]+)`/g)) {
      names++;
      if (!fs.existsSync(path.join(root, file))) t.fail(`${page} names ${file}, which is not there`);
    }
  t.ok(names > 100, `${names} names were found`);
});

const LINE_CHARS_MAX = 120;

t.test('lines of pages can be read in a terminal', async t => {
  for (const page of pages)
    for (const [k, line] of read(page).split('\n').entries())
      if (line.length > LINE_CHARS_MAX)
        t.fail(`${page}:${k + 1} has ${line.length} characters, at most ${LINE_CHARS_MAX}`);
});

t.test('a page begins with the question it answers', async t => {
  for (const page of pages.filter(p => p !== 'README.md' && p !== 'CHANGELOG.md' && !p.startsWith('examples/')))
    t.match(read(page), /^# .+\n\nThis page answers /, page);
});

/** Riddles and archaic words: name the client, caller, host, user or administrator that is meant. */
const BANNED =
  /\b(nobody|whoever|somebody|anew|thereof|of its own accord|heed|lest|thence|whence|hither|afresh|therein|hereby|in the clothes of|greatest eater)\b/gi;

t.test('texts name who is meant', async t => {
  for (const file of [...sources.filter(f => f !== 'test/words.test.ts'), ...pages, 'admin/index.html']) {
    // A value of the API that clients rely on: no kind of caller is accepted.
    const words = [...read(file).replaceAll("'nobody'", '').matchAll(BANNED)].map(m => m[0]);
    t.same(words, [], file);
  }
});

/**
 * Words for which there is a plainer one: `next to` or `in addition to`, `every caller`, `redirects`, `is called with`,
 * `unavailable`, `decided right now`.
 */
const UNCLEAR =
  /\b(beside|everybody|anybody|leads? on|told of|(?:is|are) told|cannot be told|lies? idle|be had|for want of|gone with it|behind the (?:id|deletion|string|headers))\b/gi;

t.test('comments and errors use the plain word', async t => {
  for (const file of [...sources.filter(f => f !== 'test/words.test.ts'), ...pages, 'admin/index.html']) {
    const words = [...read(file).matchAll(UNCLEAR)].map(m => m[0]);
    t.same(words, [], file);
  }
});

/**
 * Sentences of these pages that say never, always, only or at most, by some of their words, with the test that holds each: its file and
 * its title.
 */
const CLAIMS: Record<string, Array<[words: string, file: string, title: string]>> = {
  'docs/SECURITY.md': [
    [
      'Only a memory of the same plugin on the same thread',
      'execution/remembered-isolation',
      'the memory of an execution that did not return normally is not used again',
    ],
    ['One holds at most seven', 'execution/fairness', 'one caller holds at most seven of a plugin’s eight slots'],
    [
      'at most 512 requests',
      'execution/slots',
      'one plugin cannot use all waiting places of the host, and one caller not',
    ],
    ['A manifest only suggests', 'triggers/public-access', 'a suggestion counts only when it is accepted'],
    ['An owner always remains', 'identity/admin-roles', 'an owner is always left'],
    ['never returned', 'plugins/install', 'install checks required, sensitive, unknown and database fields'],
    ['may only append, without', 'db/service-role', 'cannot touch tables, the audit log or migrations'],
    ['only of a person who is no longer there', 'audit/audit-log', 'a person is erased from the log, and the chain'],
    ['may only append; the database', 'db/service-role', 'cannot touch tables, the audit log or migrations'],
    ['shown only where nothing in it can run', 'files/file-headers', 'only what cannot run is shown in the browser'],
    ['never unpacked', 'frontends/frontends', 'a ZIP that is no honest frontend is refused, and nothing of it stays'],
    ['only databases the plugin declares', 'host/sql', 'only databases that were declared and given can be opened'],
    ['20 MiB at most', 'host/guarded-calls', 'messengers hand over files of 20 MiB at most'],
    ['reach only addresses', 'host/guarded-calls', 'a call of the service reaches no inner address'],
    ['at most 8 KiB', 'http/json-bodies', 'what needs no credential takes 8 KiB at most'],
    ['at most 20 places', 'http/json-bodies', 'a refusal names at most 20 errors, and long quotes are cut'],
    ['at most 20 cookies', 'triggers/answers', 'an answer may set only a few'],
    ['only together with a proof', 'api/browser-origin', 'opens the admin API only with the proof of our page'],
    ['`admin_session` never travels', 'api/plugin-origin', 'has its user, and nothing of the service'],
    ['never brings a proof', 'identity/passkeys', 'a passkey alone opens a browser in which its owner has logged in'],
    ['only with the cookie', 'identity/passkeys', 'opens nothing without the cookie of a known browser'],
  ],
  'docs/access.md': [
    [
      'only public triggers answer',
      'authz/trigger-access',
      'no caller gets in without a flag for its kind, except on a public',
    ],
    ['open to logged-in users only', 'triggers/public-access', 'a new trigger is for logged-in users'],
  ],
  'docs/limits.md': [
    ['at most 5 minutes apart', 'outbox/outbox', 'the wait after a failure doubles from two seconds to five'],
  ],
};

/** Sentences and rows of a page, each on one line, without headings. */
const sentencesOf = (page: string): string[] =>
  proseOf(page)
    .replace(/^#.*$/gm, '')
    .split(/\n\s*(?=\n|- |\d+\. |\|)/)
    .flatMap(block =>
      block
        .trim()
        .replace(/\s+/g, ' ')
        .split(/(?<=[.;:])\s+(?=[A-Z`])/),
    );

t.test('what the pages of security, access and limits promise without exception is held by a test each', t => {
  for (const [page, claims] of Object.entries(CLAIMS)) {
    const promises = sentencesOf(page).filter(s => /\b(never|always|only|at most)\b/i.test(s));
    for (const promise of promises)
      t.ok(
        claims.some(([words]) => promise.includes(words)),
        `${page}: name the test that holds "${promise}"`,
      );
    for (const [words, file, title] of claims) {
      t.ok(
        promises.some(s => s.includes(words)),
        `${page} says "${words}"`,
      );
      t.ok(read(`test/${file}.test.ts`).includes(title), `test/${file}.test.ts has "${title}"`);
    }
  }
  t.end();
});
