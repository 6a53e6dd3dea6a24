import { z } from 'zod';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { HOST_ERROR, HOST_FUNCTION_BY_NAME, type HostFunction } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import { ENTRY } from '../abi/shared-layout.ts';
import { OperatorError } from '../base/errors.ts';
import { fieldErrorsOf } from '../base/field-errors.ts';
import { LIMITS } from '../base/limits.ts';
import { permissionsOf } from '../plugins/manifest.ts';
import { sha256Of } from '../plugins/module-storage.ts';
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

const eventKind = z.object({ kind: z.string(), deadline_ms: z.number().optional() });

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
  /** Whether it failed then and another module ends well now. */
  isMended: boolean;
  /** Whether the module is the recorded one; null when the recording does not say. */
  isRecorded: boolean | null;
  /** Host calls that were answered from the recording. */
  calls: number;
  outcome: ExecutionOutcome;
};

/** Result of `kv_update` that has written. */
const WRITTEN = 1;

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

/** Where a module knows no lines, frames name the place in the module: another build of the same sources has others. */
const withoutOffsets = (failure: RecordedValue): RecordedValue =>
  typeof failure === 'string'
    ? failure.replace(/wasm:\/\/wasm\/[\w.-]+:wasm-function\[\d+\]:0x[0-9a-f]+/g, 'wasm')
    : failure;

/** The status of the answer of an execution that ended well. */
export const answerStatus = ({ status }: ExecutionOutcome): number => (status === 0 ? 204 : status);

/** What is different; `call` is the host call of this run that shows it, counted from 1; null for what no call shows. */
type Difference = { text: string; call: number | null };

/** Answers calls that the recording knows nothing of. */
type Beyond = {
  answer(row: HostFunction, args: readonly HostArgument[]): HostResult | Promise<HostResult>;
  /** Takes note of what a call that the recording answers has stored or read: later ones may ask for it again. */
  note(name: string, args: readonly HostArgument[], then: RecordedCall): void;
};

/** A host call of this run. `at`: index of the recorded call that answered it; null: none did. */
type Asked = { at: number | null; name: string; args: readonly RecordedValue[]; how: string };

const AS_IN_A_TEST = ' (answered as in a test, with nothing stored)';

const requestShape = z.object({ url: z.string() });

function addressOf(request: RecordedValue | undefined): string {
  try {
    return requestShape.parse(JSON.parse(String(request))).url;
  } catch {
    return '';
  }
}

/** What a call is about: the answer for one key, file, plugin or address says nothing of another. */
function subjectOf(name: string, [first]: readonly RecordedValue[]): string {
  if (name === 'http_request') return addressOf(first);
  return /^(?:kv|file|plugin)_/.test(name) ? JSON.stringify(first) : '';
}

/** Answers host calls from the recording, and notes what is asked otherwise. */
class Player {
  readonly #calls: readonly RecordedCall[];
  /** Arguments of each call as JSON: they are compared with those of every call that is made now. */
  readonly #arguments: readonly string[];
  readonly #masker: Masker;
  readonly #isRecorded: boolean;
  /** Recorded calls that have answered one. */
  readonly #used = new Set<number>();
  readonly #asked: Asked[] = [];
  /** Host calls of this run, the refused one included. */
  #made = 0;
  /** The recorded call behind the one that answered last. */
  #next = 0;
  readonly #refused: number | null;
  readonly #beyond: Beyond | null;

  /**
   * @param secrets that were taken out when it was recorded, so that what is asked now is masked alike
   * @param isRecorded whether the recorded module runs: what it asks is what it asked then, also where a hidden value makes it
   *   look otherwise
   * @param refused the host call of this run that fails, counted from 1, so that the failure names its place; null: none
   * @param beyond answers what was not asked then; null: such a call fails
   */
  constructor(
    calls: readonly RecordedCall[],
    secrets: readonly string[],
    isRecorded: boolean,
    refused: number | null,
    beyond: Beyond | null,
  ) {
    this.#calls = calls;
    this.#arguments = calls.map(call => JSON.stringify(call.arguments));
    this.#masker = new Masker(secrets);
    this.#isRecorded = isRecorded;
    this.#refused = refused;
    this.#beyond = beyond;
  }

  /** Host calls that were answered from the recording. */
  get answered(): number {
    return this.#used.size;
  }

  masked(value: HostArgument): RecordedValue {
    return this.#masker.value(value);
  }

  maskedHeaders(flat: string): string {
    return this.#masker.headers(flat);
  }

  answer(row: HostFunction, values: readonly HostArgument[]): HostResult | Promise<HostResult> {
    const { name } = row;
    this.#made++;
    if (this.#made === this.#refused) return hostError(HOST_ERROR.unavailable, REFUSED);
    const args = values.map(value => this.masked(value));
    const at = this.#find(name, args);
    const how = at === null && this.#beyond !== null ? AS_IN_A_TEST : '';
    this.#asked.push({ at, name, args, how });
    const then = at === null ? undefined : this.#calls[at];
    if (at === null || then === undefined) {
      if (this.#beyond !== null) return this.#beyond.answer(row, values);
      return hostError(HOST_ERROR.unavailable, `the recording has no answer to ${name} here`);
    }
    this.#used.add(at);
    this.#next = at + 1;
    this.#beyond?.note(name, values, then);
    return {
      code: then.code,
      ...(then.data === null ? {} : { data: recordedBytes(then.data) }),
      ...(then.body === null ? {} : { body: recordedBytes(then.body) }),
    };
  }

  /**
   * The recorded call that answers this one: the next one that is the same, so that calls a mended module no longer makes are
   * passed over; else one before that it makes later than then; else the next one of the same function about the same.
   */
  #find(name: string, args: readonly RecordedValue[]): number | null {
    const text = JSON.stringify(args);
    let before: number | null = null;
    let other: number | null = null;
    for (const [k, call] of this.#calls.entries()) {
      if (call.function !== name || this.#used.has(k)) continue;
      const isSame = this.#arguments[k] === text;
      if (isSame && k >= this.#next) return k;
      if (isSame) before ??= k;
      else if (k >= this.#next && (this.#isRecorded || subjectOf(name, args) === subjectOf(name, call.arguments)))
        other ??= k;
    }
    return before ?? other;
  }

  /** What was asked otherwise, in the order of the calls. */
  differences(): Difference[] {
    const found: Difference[] = [];
    let next = 0;
    const notMade = (to: number): void => {
      for (; next < to; next++) {
        const call = this.#calls[next];
        if (call !== undefined && !this.#used.has(next))
          found.push({
            text: `host call ${next + 1}: then ${callText(call.function, call.arguments)}, now not made`,
            call: null,
          });
      }
    };
    for (const [k, { args, at, how, name }] of this.#asked.entries()) {
      const now = `${callText(name, args)}${how}`;
      if (at === null) {
        const call = this.#calls[next];
        const isInItsPlace = call?.function === name && !this.#used.has(next);
        const then = call === undefined ? 'no further call' : 'not made';
        const before = call !== undefined && isInItsPlace ? callText(call.function, call.arguments) : then;
        found.push({ text: `host call ${next + 1}: then ${before}, now ${now}`, call: k + 1 });
        if (isInItsPlace) next++;
      } else if (at < next) {
        const then = this.#calls[at]?.arguments ?? [];
        const before = this.#arguments[at] === JSON.stringify(args) ? '' : `, and was ${callText(name, then)}`;
        found.push({ text: `host call ${at + 1}: ${now} is made later than then${before}`, call: k + 1 });
      } else {
        notMade(at);
        next = at + 1;
        const then = this.#calls[at]?.arguments ?? [];
        if (this.#arguments[at] !== JSON.stringify(args))
          found.push({ text: `host call ${at + 1}: then ${callText(name, then)}, now ${now}`, call: k + 1 });
      }
    }
    notMade(this.#calls.length);
    return found;
  }
}

/**
 * How much longer than an execution a replay may take: a kit that looks whether its time is up, and then says where it is,
 * may be late on a busy machine.
 */
const LATE_MS = 2000;

/** The recorded execution in a sandbox of this machine, as often as it is wanted. */
class Rerun {
  readonly #sandbox: AuthorSandbox<Player>;
  readonly #then: RecordedExecution;
  readonly #secrets: readonly string[];
  readonly #isRecorded: boolean;

  constructor(module: Uint8Array, then: RecordedExecution, config: Record<string, string>, isRecorded: boolean) {
    this.#then = then;
    this.#isRecorded = isRecorded;
    this.#secrets = Object.values(config);
    this.#sandbox = new AuthorSandbox<Player>(module, {
      config: { ...then.config, ...config },
      timeoutMs: LIMITS.executionMsMax + LATE_MS,
      drawn: Buffer.from(then.drawn ?? '', 'base64'),
      dispatch: (row, args, player) => player.answer(row, args),
    });
  }

  /** @param refused the host call that fails, counted from 1; null: none */
  async run(refused: number | null): Promise<{ outcome: ExecutionOutcome; player: Player }> {
    const { body, calls, event, outcome } = this.#then;
    // Of the recorded module all that it asked is known, unless it failed: there it may go on now.
    const beyond = this.#isRecorded && outcome.kind === 'ok' ? null : this.#beyond();
    const player = new Player(calls, this.#secrets, this.#isRecorded, refused, beyond);
    const entry = kindOf(event) === 'messenger' ? ENTRY.message : ENTRY.handle;
    const recorded = body === null ? null : recordedBytes(body);
    const ended = await this.#sandbox.run({ event, body: recorded, entry, context: player });
    const { deadline_ms: limit = LIMITS.executionMsMax } = eventKind.parse(JSON.parse(event));
    // It had less time then than a replay has.
    if (ended.kind !== 'ok' || ended.runMs <= limit) return { outcome: ended, player };
    const failure = `it ended well after ${Math.round(ended.runMs)} ms; its deadline was at ${limit} ms`;
    return { outcome: { ...ended, kind: 'deadline', failure }, player };
  }

  /** What was not asked then is answered as in a test of the author, from an empty store. */
  #beyond(): Beyond {
    const host = new MemoryHost();
    const permissions = new Set(permissionsOf(this.#sandbox.manifest));
    const answer: Beyond['answer'] = (row, args) =>
      answerCall(host, row, args, { kind: 'http', user: null, permissions, replies: [] });
    return {
      answer,
      note(name, args, then) {
        const row = HOST_FUNCTION_BY_NAME.get(name);
        const set = HOST_FUNCTION_BY_NAME.get('kv_set');
        if (row === undefined || set === undefined || then.code < 0) return;
        if (name === 'kv_set' || name === 'kv_delete') void answer(row, args);
        const [key = '', , , value = ''] = args;
        // Whether it writes was decided then, by what the store held.
        if (name === 'kv_update' && then.code === WRITTEN) void answer(set, [key, value, 0]);
        if (name === 'kv_update' && then.body !== null) void answer(set, [key, recordedBytes(then.body), 0]);
        // What it read is there, and a number counts on from what it was.
        if ((name === 'kv_get' || name === 'kv_increment') && then.data !== null)
          void answer(set, [key, recordedBytes(then.data), 0]);
      },
    };
  }

  /** Runs again with this call refused, and reads its place from the failure. @returns empty if the handler hides it */
  async #placeOf(call: number): Promise<string> {
    const { outcome } = await this.run(call);
    const at = outcome.failure.lastIndexOf(REFUSED);
    const [first, frame = ''] = at < 0 ? [''] : outcome.failure.slice(at).split('\n');
    return first === REFUSED && /^\s+at /.test(frame) ? ` ${frame.trim()}` : '';
  }

  /** @returns a line for each difference, the first ones with their places */
  async placed(differences: readonly Difference[]): Promise<string[]> {
    const lines: string[] = [];
    let looked = 0;
    for (const { call, text } of differences.slice(0, DIFFERENCES_MAX))
      lines.push(call !== null && looked++ < PLACES_MAX ? `${text}${await this.#placeOf(call)}` : text);
    const more = differences.length - lines.length;
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
  const isRecorded = then.module_sha256 === undefined ? null : then.module_sha256 === sha256Of(module);
  const rerun = new Rerun(module, then, config, isRecorded === true);
  try {
    const { outcome, player } = await rerun.run(null);
    const differences = player.differences();
    const { failure, headers, kind, status } = then.outcome;
    const compare = (what: string, before: unknown, now: unknown): void => {
      if (JSON.stringify(before) !== JSON.stringify(now))
        differences.push({ text: `${what}: then ${shown(before)}, now ${shown(now)}`, call: null });
    };
    compare('outcome', kind, outcome.kind);
    // At a deadline the failure says how long it had run and, in a replay, where it was.
    if (kind !== 'deadline' || outcome.kind !== 'deadline')
      compare('failure', withoutOffsets(failure), withoutOffsets(player.masked(outcome.failure)));
    // Replies to a message are host calls. Of a failure the service made the answer.
    if (kind === 'ok' && outcome.kind === 'ok' && kindOf(then.event) !== 'messenger') {
      compare('status', status, answerStatus(outcome));
      compare('headers', headers, player.maskedHeaders(outcome.headers));
      compare('body', then.outcome.body, player.masked(outcome.body));
    }
    const isMended = kind !== 'ok' && outcome.kind === 'ok' && isRecorded !== true;
    return { differences: await rerun.placed(differences), isMended, isRecorded, calls: player.answered, outcome };
  } finally {
    await rerun.close();
  }
}
