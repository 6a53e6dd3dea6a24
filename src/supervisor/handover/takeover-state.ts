import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { foreignFunctions } from '../../base/foreign-functions.ts';
import { configOrigin } from '../../config/load.ts';
import { brokerState } from '../../execution/slot-broker.ts';
import { strikeMessage } from '../../records/strikes.ts';

/**
 * What a supervisor hands on to the program that takes its place in the same process
 * (docs/ARCHITECTURE.md "Processes and threads"). Numbers called `fd` are descriptors that stay open in between.
 */

/** Names the open file with the state, for the program that takes over; `check` asks whether it could. */
export const TAKEOVER_VARIABLE = 'PLUGIN_HOST_TAKEOVER';

const fd = z.number().int().min(0);
const environment = z.record(z.string(), z.string());

export const servingState = z.object({
  pid: z.number().int(),
  fd,
  place: z.number().int(),
  isOfPlace: z.boolean(),
  noteFile: z.string(),
  graph: z.string(),
});

export const groupState = z.object({
  hostId: z.number(),
  ended: z.number(),
  processes: z.array(servingState),
  slots: brokerState,
  strikes: z.array(strikeMessage),
});
export type GroupState = z.infer<typeof groupState>;

export const postgresState = z.object({ pid: z.number().int(), input: fd, output: fd, errors: fd, url: z.string() });
export type PostgresState = z.infer<typeof postgresState>;
export const spicedbState = z.object({ pid: z.number().int(), fd, endpoint: z.string(), sockets: z.string() });
export type SpicedbState = z.infer<typeof spicedbState>;

export const takeoverState = z.object({
  format: z.literal(1),
  /** Null: the serving processes are to be replaced. Otherwise why the other program could not, which gives back. */
  failure: z.string().nullable(),
  /** Places whose serving process the program that gives back had replaced already; an earlier release does not say. */
  replaced: z.array(z.number().int()).optional(),
  /** As it was started, with links in it: where the next reload looks for the program. */
  entry: z.string(),
  /** The program that hands over, which takes back when the other one cannot serve. */
  from: z.object({ node: z.string(), entry: z.string() }),
  /** The configuration as `BOT_...`: as it was read, and with what was found out at start. */
  given: environment,
  effective: environment,
  /** Where both come from; an earlier release does not say. */
  origins: z.object({ given: configOrigin, effective: configOrigin }).optional(),
  setupToken: z.string(),
  isSetupMode: z.boolean(),
  rolePassword: z.string(),
  /** The lock of the data directory, and the connection of the command that asked for the reload. */
  lock: fd.nullable(),
  client: fd.nullable(),
  group: groupState,
  postgres: postgresState.nullable(),
  spicedb: z.array(spicedbState),
});
export type TakeoverState = z.infer<typeof takeoverState>;

/** Commands of fcntl(2). */
const F_SETFD = 2;
const FD_CLOEXEC = 1;

/** Whether a descriptor stays open when another program is started; libuv opens all of them so that none does. */
export function keepOpen(fd: number, isKept: boolean): void {
  const library = process.platform === 'darwin' ? 'libSystem.dylib' : 'libc.so.6';
  const fcntl = foreignFunctions().load(library).func('int fcntl(int fd, int command, ...)');
  if (fcntl(fd, F_SETFD, 'int', isKept ? 0 : FD_CLOEXEC) !== 0) throw new Error(`fcntl failed for descriptor ${fd}`);
}

/** Every descriptor of a state. */
export function descriptorsOf(state: TakeoverState): number[] {
  const { client, group, lock, postgres, spicedb } = state;
  const ofPostgres = postgres === null ? [] : [postgres.input, postgres.output, postgres.errors];
  return [lock, client, ...group.processes.map(p => p.fd), ...ofPostgres, ...spicedb.map(s => s.fd)].filter(
    f => f !== null,
  );
}

/** Writes the state to a file without a name, because it holds secrets. @returns its descriptor */
export function writeTakeover(state: TakeoverState, directory: string): number {
  const file = path.join(directory, `.takeover-${process.pid}`);
  fs.rmSync(file, { force: true });
  const opened = fs.openSync(file, 'wx+', 0o600);
  fs.rmSync(file);
  fs.writeSync(opened, JSON.stringify(state));
  return opened;
}

/** Reads what `writeTakeover` wrote, and closes it. @throws Error when it is of another format */
export function readTakeover(opened: number): TakeoverState {
  const bytes = Buffer.alloc(fs.fstatSync(opened).size);
  fs.readSync(opened, bytes, 0, bytes.length, 0);
  fs.closeSync(opened);
  const state = takeoverState.parse(JSON.parse(bytes.toString()));
  // Processes that start from here on must not get them.
  for (const one of descriptorsOf(state)) keepOpen(one, false);
  return state;
}
