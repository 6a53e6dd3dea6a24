import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { takePort } from './ports.ts';
import { databaseWay } from './store-way.ts';

/** PgBouncer, where it is installed (package pgbouncer of Debian). */
export const PGBOUNCER = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find(file => fs.existsSync(file)) ?? null;

/**
 * A pooler before a database, until the test ends.
 *
 * @param mode `session` or `transaction`
 * @returns the address of the database behind it
 */
export async function startPooler(
  t: { teardown(fn: () => unknown): void; testdir(): string },
  databaseUrl: string,
  mode: 'session' | 'transaction',
): Promise<string> {
  if (PGBOUNCER === null) throw new Error('pgbouncer is not installed');
  const way = await databaseWay(databaseUrl);
  const target = new URL(databaseUrl);
  const port = await takePort();
  const directory = t.testdir();
  const config = path.join(directory, 'pgbouncer.ini');
  fs.writeFileSync(
    config,
    `[databases]
${target.pathname.slice(1)} = host=127.0.0.1 port=${way.port} user=${target.username} password=${target.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 40
max_client_conn = 200
ignore_startup_parameters = extra_float_digits,options
`,
  );
  fs.chmodSync(config, 0o644);
  // It refuses to run as root.
  const account = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn(PGBOUNCER, [...account, config], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  const exited = new Promise(resolve => child.once('exit', resolve));
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (c: Buffer) => {
      log += c.toString();
      if (log.includes('process up')) resolve();
    });
    child.once('exit', code => reject(new Error(`pgbouncer ended with ${code}: ${log}`)));
  });
  t.teardown(async () => {
    child.kill('SIGTERM');
    await exited;
    way.close();
  });
  return `postgresql://${target.username}:any@127.0.0.1:${port}${target.pathname}`;
}
