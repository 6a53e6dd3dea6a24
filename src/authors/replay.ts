import { z } from 'zod';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { HOST_ERROR, type HostFunction } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import { ENTRY } from '../abi/shared-layout.ts';
import { OperatorError } from '../base/errors.ts';
import { fieldErrorsOf } from '../base/field-errors.ts';
import { LIMITS } from '../base/limits.ts';
import { permissionsOf } from '../plugins/manifest.ts';
import {
  type RecordedCall,
  type RecordedExecution,
  type RecordedValue,
  recordedExecution,
} from '../records/recorded-execution.ts';
import { Masker, recordedBytes } from '../records/recording.ts';
import { AuthorSandbox } from './author-sandbox.ts';
import { answerCall, MemoryHost } from './memory-host.ts';

/** Runs a recorded execution again, with the answers its host calls got then (docs/plugins.md "Recordings"). */

const eventKind = z.object({ kind: z.string() });

/** What began an execution; null when the text is not the JSON of an event. */
function kindOf(event: string): string | null {
  try {
    return eventKind.parse(JSON.parse(event)).kind;
  } catch {
    return null;
  }
}

/** @param from where it comes from, for the error. @throws OperatorError when it is none */
export function readRecording(text: string, from: string): RecordedExecution {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new OperatorError(`${from} is no recording: it is not JSON`);
  }
  const read = recordedExecution.safeParse(value);
  if (read.success) {
    if (kindOf(read.data.event) !== null) return read.data;
    throw new OperatorError(`${from} is no recording of an execution: /event is not the JSON of an event`);
  }
  const [first] = fieldErrorsOf(read.error);
  throw new OperatorError(`${from} is no recording of an execution: ${first?.pointer || '/'}: ${first?.message}`);
}

export type Replay = {
  /** Differences, one line each; empty when it ran as it did then. */
  differences: string[];
  /** Whether it failed then and ends well now. */
  isMended: boolean;
  /** Host calls that were answered from the recording. */
  calls: number;
  outcome: ExecutionOutcome;
};

const DIFFERENCES_MAX = 20;
/** Differences whose place is looked for: each takes another run. */
const PLACES_MAX = 5;
/** Error of the call whose place is looked for. */
const REFUSED = 'refused, so that its place is known';
const SHOWN_CHARACTERS = 200;

const shown = (value: unknown): string => {
  const text = JSON.stringify(value);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}... (${text.length} characters)` : text;
};

const callText = (name: string, values: readonly RecordedValue[]): string => `${name}(${values.map(shown).join(', ')})`;

/** What is different; `call` is the host call of this run that shows it, counted from 1; null for what no call shows. */
type Difference = { text: string; call: number | null };

/** Answers calls that the recording knows nothing of. */
type Beyond = (row: HostFunction, args: readonly HostArgument[]) => HostResult | Promise<HostResult>;

/** Answers host calls from the recording, in its order, and notes what is asked otherwise. */
class Player {
  readonly differences: Difference[] = [];
  /** Differences beyond those that are kept. */
  more = 0;
  readonly #calls: readonly RecordedCall[];
  /** Arguments of each call as JSON: they are compared with those of every call that is made now. */
  readonly #arguments: readonly string[];
  readonly #masker: Masker;
  /** The recorded call that is expected next. */
  #next = 0;
  answered = 0;
  #made = 0;
  readonly #refused: number | null;
  readonly #beyond: Beyond | null;

  /**
   * @param secrets that were taken out when it was recorded, so that what is asked now is masked alike
   * @param refused the host call of this run that fails, counted from 1, so that the failure names its place; null: none
   * @param beyond answers what is asked after the last recorded call: a mended module goes on where the recorded one failed; null:
   *   such a call fails
   */
  constructor(
    calls: readonly RecordedCall[],
    secrets: readonly string[],
    refused: number | null,
    beyond: Beyond | null,
  ) {
    this.#calls = calls;
    this.#arguments = calls.map(call => JSON.stringify(call.arguments));
    this.#masker = new Masker(secrets);
    this.#refused = refused;
    this.#beyond = beyond;
  }

  differs(text: string, call: number | null = null): void {
    if (this.differences.length < DIFFERENCES_MAX) this.differences.push({ text, call });
    else this.more++;
  }

  masked(value: HostArgument): RecordedValue {
    return this.#masker.value(value);
  }

  maskedHeaders(flat: string): string {
    return this.#masker.headers(flat);
  }

  answer(row: HostFunction, args: readonly HostArgument[]): HostResult | Promise<HostResult> {
    const { name } = row;
    this.#made++;
    if (this.#made === this.#refused) return hostError(HOST_ERROR.unavailable, REFUSED);
    const now = args.map(value => this.masked(value));
    const at = this.#find(name, now);
    if (at === null) {
      const next = this.#calls[this.#next];
      const before = next === undefined ? 'no further call' : callText(next.function, next.arguments);
      const beyond = next === undefined ? this.#beyond : null;
      const how = beyond === null ? '' : ' (answered as in a test, with nothing stored)';
      this.differs(`host call ${this.#next + 1}: then ${before}, now ${callText(name, now)}${how}`, this.#made);
      if (beyond !== null) return beyond(row, args);
      return hostError(HOST_ERROR.unavailable, `the recording has no answer to ${name} here`);
    }
    this.#skip(at);
    const then = this.#calls[at];
    if (then === undefined) throw new Error(`no call ${at} in the recording`);
    this.#next = at + 1;
    this.answered++;
    if (this.#arguments[at] !== JSON.stringify(now))
      this.differs(
        `host call ${at + 1}: then ${callText(name, then.arguments)}, now ${callText(name, now)}`,
        this.#made,
      );
    return {
      code: then.code,
      ...(then.data === null ? {} : { data: recordedBytes(then.data) }),
      ...(then.body === null ? {} : { body: recordedBytes(then.body) }),
    };
  }

  /**
   * The recorded call that answers this one: the next one when it is the same, else the first later one that is, so that
   * calls a mended module no longer makes are passed over; else one of the same function with other arguments.
   */
  #find(name: string, now: readonly RecordedValue[]): number | null {
    const text = JSON.stringify(now);
    let other: number | null = null;
    for (let k = this.#next; k < this.#calls.length; k++) {
      if (this.#calls[k]?.function !== name) continue;
      if (this.#arguments[k] === text) return k;
      other ??= k;
    }
    return other;
  }

  /** Calls up to this one were made then and are not any more. */
  #skip(to: number): void {
    for (const [k, { arguments: values, function: name }] of this.#calls.slice(this.#next, to).entries())
      this.differs(`host call ${this.#next + k + 1}: then ${callText(name, values)}, now not made`);
  }

  /** Reports the host calls of then that are not made any more. */
  end(): void {
    this.#skip(this.#calls.length);
  }
}

/** The recorded execution in a sandbox of this machine, as often as it is wanted. */
class Rerun {
  readonly #sandbox: AuthorSandbox<Player>;
  readonly #then: RecordedExecution;
  readonly #secrets: readonly string[];

  constructor(module: Uint8Array, then: RecordedExecution, config: Record<string, string>) {
    this.#then = then;
    this.#secrets = Object.values(config);
    this.#sandbox = new AuthorSandbox<Player>(module, {
      config: { ...then.config, ...config },
      timeoutMs: LIMITS.executionMsMax,
      drawn: Buffer.from(then.drawn ?? '', 'base64'),
      dispatch: (row, args, player) => player.answer(row, args),
    });
  }

  /** @param refused the host call that fails, counted from 1; null: none */
  async run(refused: number | null): Promise<{ outcome: ExecutionOutcome; player: Player }> {
    const { body, calls, event } = this.#then;
    const player = new Player(calls, this.#secrets, refused, this.#then.outcome.kind === 'ok' ? null : this.#beyond());
    const entry = kindOf(event) === 'messenger' ? ENTRY.message : ENTRY.handle;
    const recorded = body === null ? null : recordedBytes(body);
    return { outcome: await this.#sandbox.run({ event, body: recorded, entry, context: player }), player };
  }

  /** What a plugin asks that failed then and goes on now is answered as in a test of its author, from an empty store. */
  #beyond(): Beyond {
    const host = new MemoryHost();
    const permissions = new Set(permissionsOf(this.#sandbox.manifest));
    return (row, args) => answerCall(host, row, args, { kind: 'http', user: null, permissions, replies: [] });
  }

  /** Runs again with this call refused, and reads its place from the failure. @returns empty if the handler hides it */
  async #placeOf(call: number): Promise<string> {
    const { outcome } = await this.run(call);
    const at = outcome.failure.lastIndexOf(REFUSED);
    const [first, frame = ''] = at < 0 ? [''] : outcome.failure.slice(at).split('\n');
    return first === REFUSED && /^\s+at /.test(frame) ? ` ${frame.trim()}` : '';
  }

  /** @returns the differences of a run, the first ones with their places */
  async placed({ differences, more }: Player): Promise<string[]> {
    const lines: string[] = [];
    let looked = 0;
    for (const { call, text } of differences)
      lines.push(call !== null && looked++ < PLACES_MAX ? `${text}${await this.#placeOf(call)}` : text);
    return more === 0 ? lines : [...lines, `and ${more} more differences`];
  }

  close(): Promise<void> {
    return this.#sandbox.close();
  }
}

/**
 * @param module the module as it was uploaded or built
 * @param config values of the configuration that the recording hides
 * @throws OperatorError when the gate refuses the module
 */
export async function replay(
  module: Uint8Array,
  then: RecordedExecution,
  config: Record<string, string>,
): Promise<Replay> {
  const rerun = new Rerun(module, then, config);
  try {
    const { outcome, player } = await rerun.run(null);
    player.end();
    const { failure, headers, kind, status } = then.outcome;
    const compare = (what: string, before: unknown, now: unknown): void => {
      if (JSON.stringify(before) !== JSON.stringify(now))
        player.differs(`${what}: then ${shown(before)}, now ${shown(now)}`);
    };
    compare('outcome', kind, outcome.kind);
    compare('failure', failure, player.masked(outcome.failure));
    // Replies to a message are host calls. Of a failure the service made the answer.
    if (kind === 'ok' && outcome.kind === 'ok' && kindOf(then.event) !== 'messenger') {
      compare('status', status, outcome.status === 0 ? 204 : outcome.status);
      compare('headers', headers, player.maskedHeaders(outcome.headers));
      compare('body', then.outcome.body, player.masked(outcome.body));
    }
    const isMended = kind !== 'ok' && outcome.kind === 'ok';
    return { differences: await rerun.placed(player), isMended, calls: player.answered, outcome };
  } finally {
    await rerun.close();
  }
}
