import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { type Service, startService } from '../../src/app/service.ts';
import { makeLog } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config/load.ts';
import { setPasswordCost } from '../../src/identity/password.ts';
import { holdToContract } from './contract.ts';
import { asService, makeDatabase } from './database.ts';
import { shareCache } from './shared-cache.ts';

export const TOKEN = 'test-setup-token';

/** The least bcrypt takes: a millisecond for each login, where hashes as they are stored take a quarter of a second. */
export const TEST_PASSWORD_COST = 4;
setPasswordCost(TEST_PASSWORD_COST);

/** For tests in which executions run at the same time: more threads than one plugin has slots. */
export const MANY_LANES = { BOT_EXECUTION_LANES: '12' };

export type Json = { [key: string]: JsonValue };
export type JsonValue = string | number | boolean | null | JsonValue[] | Json;

export type Answer = { status: number; headers: Headers; text: string; json: Json };

export type TestService = {
  base: string;
  service: Service;
  databaseUrl: string;
  directory: string;
  /** A request to the admin API with the setup token. */
  admin(method: string, path: string, body?: unknown): Promise<Answer>;
  upload(bytes: Uint8Array): Promise<Answer>;
  /**
   * Uploads and installs; answers the upload and its wasm_key. New HTTP triggers are made public and that is confirmed, so
   * that a test may call them without a login; triggers that have settings keep them.
   *
   * @param access `default`: says nothing about access, as an administrator who only installs
   */
  install(
    bytes: Uint8Array,
    config?: Json,
    access?: 'public' | 'default',
  ): Promise<{ id: string; wasmKey: string; uploaded: Json }>;
  trigger(path: string, init?: RequestInit): Promise<Answer>;
  stop(): Promise<void>;
};

export async function request(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: jsonOf(text) };
}

/** Not every answer is JSON; the test looks at the text then. */
function jsonOf(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return {};
  }
}

/** What a browser sends when a user opens a page in a window. */
export const NAVIGATION = { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
/** What it sends with a request of a page of this origin. */
export const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' };

/** A request exactly as given: fetch adds a `Sec-Fetch-Mode` of its own, and names its own host. */
export function rawRequest(
  url: string,
  headers: Record<string, string>,
  method = 'GET',
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = http.request(url, { method, headers, agent: false }, async r => {
      const chunks: Buffer[] = [];
      for await (const chunk of r as AsyncIterable<Buffer>) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      const all = Object.entries(r.headersDistinct).flatMap(([name, values = []]) =>
        values.map(v => [name, v] as [string, string]),
      );
      resolve({ status: r.statusCode ?? 0, headers: new Headers(all), text, json: jsonOf(text) });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Opens one of our pages as a browser does, and takes the proof out of it; empty when the page has none. */
export async function pageProof(base: string, path: string, cookies: Record<string, string>): Promise<string> {
  const page = await rawRequest(`${base}${path}`, { ...NAVIGATION, ...cookies });
  return /<meta name="page-proof" content="([\w-]*)">/.exec(page.text)?.[1] ?? '';
}

/** Members of an installation request that make every new HTTP trigger of an upload public. */
export function publicAccess(upload: Json): Json {
  const rows = upload.access as Json[];
  const fresh = rows.filter(row => row.new === true).map(row => String(row.trigger));
  const open = { allow_user_session: false, allow_service_key: false, policy_expression: '' };
  return { triggers: Object.fromEntries(fresh.map(name => [name, open])), accept_public: true };
}

function filled(bytes: Uint8Array, field = 'file'): FormData {
  const form = new FormData();
  form.append(field, new Blob([new Uint8Array(bytes)]), 'plugin.wasm');
  return form;
}

/**
 * A whole service in this process, on a port of its own.
 *
 * @param sharedWith a service whose database and directory it shares, as another host would; without one it has its own
 */
export async function startTestService(
  env: Record<string, string> = {},
  sharedWith?: TestService,
  graphInUse: (endpoint: string) => void = () => {},
): Promise<TestService> {
  const database =
    sharedWith === undefined ? await makeDatabase() : { url: sharedWith.databaseUrl, drop: async () => {} };
  const directory =
    sharedWith?.directory ?? fs.mkdtempSync(path.join(process.env.TEST_DIRECTORY ?? '/tmp', 'service-'));
  shareCache(directory);
  const config = loadConfig(null, {
    BOT_HTTP_PORT: '0',
    BOT_DATA_DIR: directory,
    BOT_DATABASE_URL: asService(database.url),
    BOT_DATABASE_POOL_SIZE: '10',
    // A thread costs more to start than most tests do with it.
    BOT_EXECUTION_LANES: '2',
    ...env,
  });
  const log = makeLog(process.env.TEST_LOG ?? 'silent');
  const service = await startService({
    config,
    log,
    setupToken: TOKEN,
    noteFile: null,
    suspects: [],
    pages: process.env.TEST_PAGES ?? null,
    graphInUse,
  });
  const base = `http://127.0.0.1:${service.server.port}`;
  holdToContract(base);
  const authorization = `Bearer ${TOKEN}`;
  const self: TestService = {
    base,
    service,
    databaseUrl: database.url,
    directory,
    admin: (method, where, body) =>
      request(`${base}/api/admin${where}`, {
        method,
        headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    upload: bytes =>
      request(`${base}/api/admin/plugins/upload`, { method: 'POST', headers: { authorization }, body: filled(bytes) }),
    async install(bytes, config = {}, access = 'public') {
      const uploaded = await self.upload(bytes);
      if (uploaded.status !== 201) throw new Error(`upload: ${uploaded.status} ${uploaded.text}`);
      const id = String(uploaded.json.id);
      const wasmKey = String(uploaded.json.wasm_key);
      const installed = await self.admin('POST', `/plugins/${id}/install`, {
        wasm_key: wasmKey,
        config,
        accept_permissions: true,
        accept_widening: true,
        ...(access === 'public' ? publicAccess(uploaded.json) : {}),
      });
      if (installed.status !== 200) throw new Error(`install: ${installed.status} ${installed.text}`);
      return { id, wasmKey, uploaded: uploaded.json };
    },
    trigger: (where, init) => request(`${base}/api/triggers/http/${where}`, init),
    async stop() {
      await service.stop(5000);
      await database.drop();
      if (sharedWith === undefined) fs.rmSync(directory, { recursive: true, force: true });
    },
  };
  return self;
}
