import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { BARE_ENV } from './bare-env.ts';

const CHILD = path.resolve(import.meta.dirname, 'service-process.ts');

type Test = { teardown(fn: () => unknown): void; testdir(): string };
export type ChildService = { child: ChildProcess; base: string };

/**
 * Starts services as processes of their own, for tests that end them; what is left of them ends with the test.
 *
 * @param databaseUrl the database they share
 * @param more further `BOT_...` variables
 * @returns starts one; rejected when it ends before it listens
 */
export function childServices(t: Test, databaseUrl: string, more: Record<string, string>): () => Promise<ChildService> {
  const env = {
    ...BARE_ENV,
    TEST_LOG: process.env.TEST_LOG ?? 'silent',
    BOT_HTTP_PORT: '0',
    BOT_DATA_DIR: path.join(t.testdir(), 'data'),
    BOT_DATABASE_URL: databaseUrl,
    BOT_DATABASE_POOL_SIZE: '10',
    BOT_EXECUTION_LANES: '2',
    ...more,
  };
  return async () => {
    const child = spawn(process.execPath, [...process.execArgv, CHILD], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    t.teardown(() => child.kill('SIGKILL'));
    const [line] = await Promise.race([
      once(child.stdout, 'data'),
      once(child, 'exit').then(() => Promise.reject(new Error('the service ended before it listened'))),
    ]);
    return { child, base: `http://127.0.0.1:${String(line).trim()}` };
  };
}
