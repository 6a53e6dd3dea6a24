import { spawn } from 'node:child_process';
import path from 'node:path';
import { BARE_ENV } from './bare-env.ts';
import { CookieJar } from './identity-provider.ts';
import { request, type TestService, TOKEN } from './service.ts';

/** Commands as people run them, and the administration keys they take. */

export const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');

export type Ran = { code: number | null; out: string; err: string };

/** Runs `plugin-host ARGS` with nothing of this process's environment but what starts it. */
export function runCommand(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...BARE_ENV, ...env } });
  let [out, err] = ['', ''];
  child.stdout.on('data', (c: Buffer) => (out += c.toString()));
  child.stderr.on('data', (c: Buffer) => (err += c.toString()));
  return new Promise(resolve => child.once('close', code => resolve({ code, out, err })));
}

/** Makes the first administrator of a service. @returns what makes administration keys in the name of that administrator */
export async function keysOfFirstAdmin({ base }: TestService): Promise<(...scopes: string[]) => Promise<string>> {
  const setup = await request(`${base}/api/admin/auth/setup`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'root@uni.example', password: 'correct horse battery' }),
  });
  if (setup.status !== 200) throw new Error(`setup: ${setup.status} ${setup.text}`);
  const jar = new CookieJar();
  jar.take(setup.headers);
  return async (...scopes) => {
    const made = await request(`${base}/api/admin/keys`, {
      method: 'POST',
      headers: { ...jar.header, 'content-type': 'application/json' },
      body: JSON.stringify({ name: scopes.join('+'), scopes }),
    });
    if (made.status !== 201) throw new Error(`key: ${made.status} ${made.text}`);
    return String(made.json.key);
  };
}
