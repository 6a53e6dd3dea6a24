import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { ServiceError } from '../../base/errors.ts';
import { NO_STORE, type Reply, type Request } from '../../http/message.ts';
import type { PageProofs } from '../../identity/page-proof.ts';
import type { Route } from '../contract/route.ts';

/** Pages of users: one page for all of them. */
const USER_PAGES = ['/account/', '/messengers/'] as const;

/** Where the proof, and the value that allows styles, stand in a page. */
const PROOF = '<meta name="page-proof" content="">';
const NONCE = '<meta name="style-nonce" content="">';

const policyOf = (styles: string): [string, string] => [
  'Content-Security-Policy',
  `default-src 'self'; style-src 'self'${styles}; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
];
const SECURITY: ReadonlyArray<[string, string]> = [policyOf(''), ['Referrer-Policy', 'no-referrer']];
/** A window of ours is out of reach for the pages of plugins, also for one that opened it. */
const PAGE_SECURITY: ReadonlyArray<[string, string]> = [
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  // The proof in it belongs to one session.
  NO_STORE,
];

/** Whether a browser opens a page in a window of its own, where no other page can read it. */
function isDocument({ headers }: Request): boolean {
  const dest = headers['sec-fetch-dest'];
  if (dest === undefined) return false;
  if (dest === 'document' && headers['sec-fetch-mode'] === 'navigate') return true;
  throw new ServiceError(
    'forbidden',
    'this page cannot be read by a script or shown in a frame; open its address in the browser',
  );
}

export type PageParts = {
  proofs: PageProofs;
  inSetupMode(): Promise<boolean>;
  /** Directory of the built administration pages; null where they are not built. */
  pages: string | null;
};

/** A page with the proof of its session. */
async function pageReply(html: string, kind: 'admin' | 'user', request: Request, parts: PageParts): Promise<Reply> {
  const { inSetupMode, proofs } = parts;
  let proof = isDocument(request) ? proofs.forRequest(kind, request) : '';
  if (proof === '' && kind === 'admin' && isDocument(request) && (await inSetupMode()))
    proof = proofs.make('setup', '');
  const nonce = randomBytes(16).toString('base64url');
  const body = html.replace(PROOF, PROOF.replace('""', `"${proof}"`)).replace(NONCE, NONCE.replace('""', `"${nonce}"`));
  const headers: Array<[string, string]> = [['Content-Type', 'text/html; charset=utf-8'], ...PAGE_SECURITY];
  return { status: 200, headers: [...headers, policyOf(` 'nonce-${nonce}'`)], body };
}

/** `/admin/*` (docs/SECURITY.md "The proof of our pages"), and the pages of users. */
export function adminPageRoutes(parts: PageParts): Route[] {
  const redirect = (from: string, to: string): Route => ({
    method: 'GET',
    path: from,
    guard: 'none',
    handle: () => ({ status: 302, headers: [['Location', to]], body: '' }),
  });
  return [
    ...(parts.pages === null ? missingPages() : builtPages(parts.pages, parts)),
    redirect('/', '/admin/'),
    redirect('/admin', '/admin/'),
    redirect('/kits', '/kits/'),
    ...USER_PAGES.map(to => redirect(to.slice(0, -1), to)),
  ];
}

function missingPages(): Route[] {
  const missing: Reply = {
    status: 503,
    headers: [['Content-Type', 'text/plain; charset=utf-8'], ...PAGE_SECURITY],
    body: 'The pages are not built. Run "npm ci", then start the service again; plugin dev has none. The API works without them: /api/docs\n',
  };
  return ['/admin/*', ...USER_PAGES].map(path => ({ method: 'GET', path, guard: 'none', handle: () => missing }));
}

/** The administration and the pages of users, and the files both load. */
function builtPages(pages: string, parts: PageParts): Route[] {
  const page = (file: string, where: string, kind: 'admin' | 'user'): Route => {
    const html = fs.readFileSync(path.join(pages, file), 'utf8');
    for (const place of [PROOF, NONCE]) if (!html.includes(place)) throw new Error(`${file} has no ${place}`);
    return {
      method: 'GET',
      path: where,
      guard: 'none',
      handle: ({ request }) => pageReply(html, kind, request, parts),
    };
  };
  return [
    {
      method: 'GET',
      path: '/admin/assets/:file',
      guard: 'none',
      handle: ({ request }) => asset(pages, request.params.file ?? '', request.headers['accept-encoding'] ?? ''),
    },
    page('index.html', '/admin/*', 'admin'),
    ...USER_PAGES.map(path => page('user.html', path, 'user')),
  ];
}

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};
/** Files that the build names after their contents may be kept for ever. */
const HASHED = /-[\w-]{8}\.\w+$/;

/** A file of the build, packed as the browser takes it; the build has packed it before. */
async function asset(pages: string, name: string, accepted: string): Promise<Reply> {
  const type = TYPES[/^[\w-][\w.-]*\.(\w+)$/.exec(name)?.[1] ?? ''];
  if (type === undefined) throw new ServiceError('not_found', `there is no file "${name}" among the pages`);
  const file = path.join(pages, 'assets', name);
  const codings: Array<[string, string]> = [
    ['br', '.br'],
    ['gzip', '.gz'],
  ];
  const headers: Array<[string, string]> = [
    ['Content-Type', type],
    ...SECURITY,
    ['Vary', 'Accept-Encoding'],
    ['Cache-Control', HASHED.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache'],
  ];
  for (const [coding, ending] of codings) {
    if (!new RegExp(`\\b${coding}\\b`).test(accepted)) continue;
    const body = await read(file + ending);
    if (body !== null) return { status: 200, headers: [...headers, ['Content-Encoding', coding]], body };
  }
  const body = (await read(file)) ?? (await unpacked(`${file}.gz`));
  if (body === null) throw new ServiceError('not_found', `there is no file "${name}" among the pages`);
  return { status: 200, headers, body };
}

/** For a client that takes no coding. */
async function unpacked(file: string): Promise<Buffer | null> {
  const packed = await read(file);
  return packed === null ? null : await promisify(gunzip)(packed);
}

const read = (file: string): Promise<Buffer | null> => fs.promises.readFile(file).catch(() => null);
