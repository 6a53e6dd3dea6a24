import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Reply } from '../http/message.ts';
import { type Handle, resource, serve } from './endpoint.ts';
import { openApiDocument } from './openapi.ts';
import { REFERENCE_STYLE, referencePage } from './reference-page.ts';
import { RESOURCES } from './resources.ts';
import type { Route } from './route.ts';

export type DocsApiParts = { version: string };

/** The description of the API, for programs and for people (docs/api.md "Contract"). */
export const apiDocs = resource('Description of the API', 'This document and its page.', {
  document: {
    method: 'GET',
    path: '/api/openapi.json',
    guard: 'none',
    summary: 'Read the OpenAPI document',
    replies: {
      200: {
        media: 'application/json',
        description: 'The document',
        schema: z.looseObject({ openapi: z.string() }),
      },
      304: null,
    },
  },
  page: {
    method: 'GET',
    path: '/api/docs',
    guard: 'none',
    summary: 'Open the reference page',
    replies: {
      200: { media: 'text/html', description: 'The reference, as one page that needs nothing else' },
      304: null,
    },
  },
});

/** The whole document. @param version of the service */
export const apiDocument = (version: string) => openApiDocument({ ...RESOURCES, apiDocs }, version);

type Built = { text: string; etag: string };
const built = (text: string): Built => ({
  text,
  etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`,
});

const STYLE_HASH = createHash('sha256').update(REFERENCE_STYLE).digest('base64');
const PAGE_HEADERS: Array<[string, string]> = [
  ['Content-Type', 'text/html; charset=utf-8'],
  [
    'Content-Security-Policy',
    `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'`,
  ],
  ['Referrer-Policy', 'no-referrer'],
];

const JSON_TYPE: [string, string] = ['Content-Type', 'application/json; charset=utf-8'];

type Texts = { document: Built; page: Built };

const document: Handle<typeof apiDocs.document, Texts> = ({ document }, { request }) =>
  request.headers['if-none-match'] === document.etag
    ? { status: 304, headers: cacheHeaders(document) }
    : { status: 200, headers: [JSON_TYPE, ...cacheHeaders(document)], body: document.text };

const page: Handle<typeof apiDocs.page, Texts> = ({ page }, { request }) =>
  request.headers['if-none-match'] === page.etag
    ? { status: 304, headers: cacheHeaders(page) }
    : { status: 200, headers: [...PAGE_HEADERS, ...cacheHeaders(page)], body: page.text };

const cacheHeaders = ({ etag }: Built): Reply['headers'] => [
  ['ETag', etag],
  ['Cache-Control', 'no-cache'],
];

/** Both are made once, at start. */
export function docsRoutes({ version }: DocsApiParts): Route[] {
  const whole = apiDocument(version);
  const texts = { document: built(JSON.stringify(whole)), page: built(referencePage(whole)) };
  return serve(apiDocs, texts, { document, page });
}
