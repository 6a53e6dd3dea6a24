import fs from 'node:fs';
import type { Reply } from '../message.ts';
import type { Route } from './route.ts';

/** Files of our own pages: read at start, served with a policy that runs nothing but them. */
const FILES: ReadonlyArray<readonly [path: string, file: string, type: string]> = [
  ['/admin/', 'index.html', 'text/html; charset=utf-8'],
  ['/admin/style.css', 'style.css', 'text/css; charset=utf-8'],
  ['/admin/script.js', 'script.js', 'text/javascript; charset=utf-8'],
  ['/messengers/', 'messengers/index.html', 'text/html; charset=utf-8'],
  ['/messengers/script.js', 'messengers/script.js', 'text/javascript; charset=utf-8'],
];

const DIRECTORY = new URL('../../admin/', import.meta.url);

const SECURITY: Array<[string, string]> = [
  ['Content-Security-Policy', "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cache-Control', 'no-cache'],
];

/** `/admin/*` (service.md 4.7), and the page on which users link accounts of messengers. */
export function adminPageRoutes(): Route[] {
  const pages = FILES.map(([path, file, type]): Route => {
    const reply: Reply = {
      status: 200,
      headers: [['Content-Type', type], ...SECURITY],
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
  return [...pages, redirect('/admin', '/admin/'), redirect('/', '/admin/'), redirect('/messengers', '/messengers/')];
}
