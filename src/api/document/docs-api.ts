import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Reply } from '../../http/message.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';
import { openApiDocument } from './openapi.ts';
import { REFERENCE_STYLE, referencePage } from './reference-page.ts';
import { RESOURCES } from './resources.ts';

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

/** Version of the API, not of the service: callers without a credential need not know which release runs here. */
const API_VERSION = '1.0';

/** The whole document. */
export const apiDocument = () => openApiDocument({ ...RESOURCES, apiDocs }, API_VERSION);

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
    `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'`,
  ],
  ['Referrer-Policy', 'no-referrer'],
];

const JSON_TYPE: [string, string] = ['Content-Type', 'application/json; charset=utf-8'];

type Texts = { document(): Built; page(): Built };

const document: Handle<typeof apiDocs.document, Texts> = texts => replyOf(texts.document(), [JSON_TYPE]);

const page: Handle<typeof apiDocs.page, Texts> = texts => replyOf(texts.page(), PAGE_HEADERS);

function replyOf({ etag, text }: Built, headers: Reply['headers']) {
  const cache: Reply['headers'] = [
    ['ETag', etag],
    ['Cache-Control', 'no-cache'],
  ];
  return { status: 200 as const, headers: [...headers, ...cache], body: text };
}

/** The result of `make`, made when it is first asked for. */
function lazy<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Both are made when they are first asked for: a tenth of a second that no start has to wait for. */
export function docsRoutes(): Route[] {
  const whole = lazy(apiDocument);
  const texts = {
    document: lazy(() => built(JSON.stringify(whole()))),
    page: lazy(() => built(referencePage(whole()))),
  };
  return serve(apiDocs, texts, { document, page });
}
