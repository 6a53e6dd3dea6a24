import { createHash } from 'node:crypto';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { addUserToken } from '../../src/identity/user-tokens.ts';
import { addUser } from '../../src/identity/users.ts';
import { buildExample } from './sdk.ts';
import { type Answer, type Json, request, startTestService, type TestService } from './service.ts';

type Teardown = { teardown(fn: () => unknown): void };

export type Upload = {
  file_id: string;
  upload_url: string;
  upload_method: string;
  upload_headers: Record<string, string>;
};

/** A user who uploads files for plugins, as an API client does. */
export class Uploader {
  readonly userId: number;
  readonly headers: Record<string, string>;
  readonly #base: string;

  constructor(base: string, userId: number, token: string) {
    this.#base = base;
    this.userId = userId;
    this.headers = { authorization: `Bearer ${token}` };
  }

  post(path: string, body?: unknown): Promise<Answer> {
    return this.ask('POST', path, body);
  }

  ask(method: string, path: string, body?: unknown): Promise<Answer> {
    return request(`${this.#base}${path}`, {
      method,
      headers: { ...this.headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** Announces a file. */
  async init(size: number, more: Json = {}): Promise<Upload> {
    const answer = await this.post('/api/files/init', {
      plugin_id: 'filebox',
      name: 'note.txt',
      mime_type: 'text/plain',
      file_type: 'document',
      size,
      ...more,
    });
    if (answer.status !== 201) throw new Error(`init: ${answer.status} ${answer.text}`);
    return answer.json as unknown as Upload;
  }

  put(upload: Upload, body: NonNullable<RequestInit['body']>, more: RequestInit = {}): Promise<Answer> {
    return request(upload.upload_url, { method: upload.upload_method, headers: upload.upload_headers, body, ...more });
  }

  complete(id: string): Promise<Answer> {
    return this.post(`/api/files/${id}/complete`);
  }

  /** The whole flow of docs/files.md "Upload". @returns the id of the ready file */
  async give(bytes: Uint8Array<ArrayBuffer>, more: Json = {}): Promise<string> {
    const upload = await this.init(bytes.length, more);
    const put = await this.put(upload, bytes);
    if (put.status !== 200) throw new Error(`put: ${put.status} ${put.text}`);
    const done = await this.complete(upload.file_id);
    if (done.status !== 200) throw new Error(`complete: ${done.status} ${done.text}`);
    return upload.file_id;
  }
}

export type FilesWorld = { s: TestService; db: Database; user(name: string): Promise<Uploader> };

/** A service with the sample `filebox`, whose triggers take user tokens. */
export async function filesWorld(t: Teardown, env: Record<string, string> = {}): Promise<FilesWorld> {
  const s = await startTestService(env);
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 3, () => {});
  t.teardown(() => db.close());
  await s.install(await filebox());
  for (const name of ['files', 'file', 'link', 'checksum', 'notes'])
    await s.admin('PUT', `/plugins/filebox/triggers/${name}/settings`, { allow_user_session: true });
  return {
    s,
    db,
    async user(name) {
      const user = await addUser(db, { displayName: name });
      const { text } = await addUserToken(db, 'pht_', { userId: user.id, name: 'n', expiresAt: null });
      return new Uploader(s.base, user.id, text);
    },
  };
}

let built: Promise<Uint8Array> | null = null;
export function filebox(): Promise<Uint8Array> {
  built ??= buildExample('filebox');
  return built;
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Bytes that follow from a seed, so that no two places look alike. */
export function pattern(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let x = seed >>> 0 || 1;
  for (let k = 0; k < length; k++) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    bytes[k] = x >>> 24;
  }
  return bytes;
}
