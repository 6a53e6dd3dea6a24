import fs from 'node:fs';
import { ServiceError } from '../base/errors.ts';
import { NO_STORE, type Reply, type Request } from '../http/message.ts';
import type { PageProofs } from '../identity/page-proof.ts';
import type { Route } from './route.ts';

/** Our own pages, and the session whose proof each is given. */
const PAGES: ReadonlyArray<readonly [path: string, file: string, kind: 'admin' | 'user']> = [
  ['/admin/', 'index.html', 'admin'],
  ['/account/', 'account/index.html', 'user'],
  ['/messengers/', 'messengers/index.html', 'user'],
];
/** What the pages load: read at start. */
const PARTS: ReadonlyArray<readonly [path: string, file: string, type: string]> = [
  ['/admin/style.css', 'style.css', 'text/css; charset=utf-8'],
  ['/admin/script.js', 'script.js', 'text/javascript; charset=utf-8'],
  ['/account/script.js', 'account/script.js', 'text/javascript; charset=utf-8'],
  ['/messengers/script.js', 'messengers/script.js', 'text/javascript; charset=utf-8'],
];

const DIRECTORY = new URL('../../admin/', import.meta.url);
/** Where the proof stands in a page. */
const PLACE = '<meta name="page-proof" content="">';

const SECURITY: Array<[string, string]> = [
  ['Content-Security-Policy', "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"],
  ['Referrer-Policy', 'no-referrer'],
];
/** A window of ours is out of reach for the pages of plugins, also for one that opened it. */
const PAGE_SECURITY: Array<[string, string]> = [
  ...SECURITY,
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

/** `/admin/*` (docs/SECURITY.md "The proof of our pages"), and the pages of users. */
export function adminPageRoutes(proofs: PageProofs, inSetupMode: () => Promise<boolean>): Route[] {
  const pages = PAGES.map(([path, file, kind]): Route => {
    const html = fs.readFileSync(new URL(file, DIRECTORY), 'utf8');
    if (!html.includes(PLACE)) throw new Error(`${file} has no place for the proof: ${PLACE}`);
    return {
      method: 'GET',
      path,
      guard: 'none',
      async handle({ request }) {
        let proof = isDocument(request) ? proofs.forRequest(kind, request) : '';
        if (proof === '' && kind === 'admin' && isDocument(request) && (await inSetupMode()))
          proof = proofs.make('setup', '');
        const body = html.replace(PLACE, PLACE.replace('""', `"${proof}"`));
        return { status: 200, headers: [['Content-Type', 'text/html; charset=utf-8'], ...PAGE_SECURITY], body };
      },
    };
  });
  const parts = PARTS.map(([path, file, type]): Route => {
    const reply: Reply = {
      status: 200,
      headers: [['Content-Type', type], ...SECURITY, ['Cache-Control', 'no-cache']],
      body: fs.readFileSync(new URL(file, DIRECTORY)),
    };
    return { method: 'GET', path, guard: 'none', handle: () => reply };
  });
  const redirect = (path: string, to: string): Route => ({
    method: 'GET',
    path,
    guard: 'none',
    handle: () => ({ status: 302, headers: [['Location', to]], body: '' }),
  });
  return [...pages, ...parts, redirect('/', '/admin/'), ...PAGES.map(([path]) => redirect(path.slice(0, -1), path))];
}
