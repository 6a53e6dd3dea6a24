import { z } from 'zod';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import { HiddenValues, MASKED, MASKED_MAIL } from '../base/hidden-values.ts';
import { LIMITS } from '../base/limits.ts';
import { isJson, type JsonPlace, maskJson } from '../base/mask-json.ts';
import { type Hiding, jsonMask, maskHeaders, maskText } from '../base/mask-text.ts';
import type { RecordedExecution, RecordedValue } from './recorded-execution.ts';

/** What an execution was given and what its host calls got, to run it again (docs/plugins.md "Recordings"). */

export type RecordingOf = {
  plugin: { id: string; version: string; sha256: string; config: Readonly<Record<string, string>> };
  trigger: string;
  /** Names of the configuration fields that are secret. */
  secretFields: readonly string[];
  event: string;
  body: Uint8Array | null;
};

/** Shorter secrets would hide parts of ordinary words. */
const SECRET_CHARACTERS_MIN = 4;
/** Shorter values of cookies are settings, such as a language. */
const COOKIE_CHARACTERS_MIN = 8;
/** Each is searched in the whole recording. */
const FOUND_MAX = 2000;

/** Bytes as text with a character for each, so that they come back as they were. */
const bytesText = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('latin1');

/** Of a cookie that is set, what says how long and where it counts. */
const COOKIE_ATTRIBUTE = /^(?:path|domain|max-age|expires|samesite|priority)$/i;

/** What a program takes out of a hidden value: the token after its scheme, the password of Basic, values of cookies. */
function partsOf(value: string): string[] {
  const [, scheme = '', token = ''] = /^(\w+)\s+(\S+)$/.exec(value) ?? [];
  const basic = scheme.toLowerCase() === 'basic' ? Buffer.from(token, 'base64').toString() : '';
  const cookies = [...value.matchAll(/(?<=^|;\s{0,8})([^=;\s]+)=([^;]*)/g)]
    .filter(([, name = '', cookie = '']) => !COOKIE_ATTRIBUTE.test(name) && cookie.length >= COOKIE_CHARACTERS_MIN)
    .map(([, , cookie = '']) => cookie);
  return [token, basic.slice(basic.indexOf(':') + 1), ...cookies];
}

/** Takes secrets and personal data out of values: as the support bundle does, and what the configuration keeps secret. */
export class Masker {
  readonly #secrets: readonly string[];
  readonly #values: readonly string[];
  /** Values that were hidden for their names: in another place of the recording the same may stand without its name. */
  readonly found = new Set<string>();
  readonly #hiding: Hiding;
  readonly #hidingBytes: Hiding;

  /** @param values found by another masker in the same recording */
  constructor(secrets: readonly string[], values: Iterable<string> = []) {
    this.#secrets = secrets.filter(secret => secret.length >= SECRET_CHARACTERS_MIN);
    this.#values = [...values];
    const onHidden = (value: string): void => {
      for (const part of [value, ...partsOf(value)])
        for (const text of part.split(MASKED)) if (text !== '' && text !== MASKED_MAIL) this.found.add(text);
    };
    this.#hiding = { known: new HiddenValues(this.#secrets, this.#values), onHidden };
    this.#hidingBytes = {
      known: new HiddenValues(this.#secrets.map(bytesText), this.#values.map(bytesText)),
      onHidden: value => onHidden(Buffer.from(value, 'latin1').toString()),
    };
  }

  text(text: string): string {
    return maskText(text, this.#hiding);
  }

  /** Headers as `name NUL value NUL`. */
  headers(flat: string): string {
    return maskHeaders(flat, this.#hiding);
  }

  /** JSON of the database: a value has the name of its column. */
  rows(json: string, columns: readonly string[]): string {
    const nameOf = (places: readonly JsonPlace[]): string => {
      const inner = places.at(-1);
      const isCell = places.length === 3 && places[0]?.name === 'rows';
      return (isCell ? columns[inner?.index ?? -1] : inner?.name) ?? '';
    };
    return maskJson(json, jsonMask(this.#hiding, nameOf));
  }

  value(value: HostArgument): RecordedValue {
    if (typeof value === 'number') return value;
    if (typeof value === 'bigint') {
      const digits = String(BigInt.asIntN(64, value));
      return { int64: this.#hiding.known.hide(digits) === digits ? digits : '0' };
    }
    if (typeof value === 'string') return this.text(value);
    const text = textOf(value);
    return text === null ? { base64: this.#bytes(value) } : this.text(text);
  }

  #bytes(bytes: Uint8Array): string {
    return Buffer.from(maskText(bytesText(bytes), this.#hidingBytes), 'latin1').toString('base64');
  }
}

/** Set in the result of `file_read_into` for the last chunk. */
const END_OF_FILE = 1 << 30;

/** The bytes a recorded value stands for. */
export const recordedBytes = (value: RecordedValue): Uint8Array => {
  if (typeof value === 'object' && 'base64' in value) return Buffer.from(value.base64, 'base64');
  return Buffer.from(typeof value === 'object' ? value.int64 : String(value));
};

/** Values of several keys, which travel in base64: what they hide is masked in them. */
function maskMany(text: string, masker: Masker): string {
  const values: Record<string, string | null> = JSON.parse(text);
  const masked = new Map<string, string | null>();
  for (const [key, value] of Object.entries(values)) {
    const name = masker.text(key);
    const content =
      value === null ? null : Buffer.from(recordedBytes(masker.value(Buffer.from(value, 'base64')))).toString('base64');
    // Keys that differ in what is hidden stay apart.
    masked.set(masked.has(name) ? `${name} ${masked.size}` : name, content);
  }
  return JSON.stringify(Object.fromEntries(masked));
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textOf(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

type KeptCall = { name: string; args: ReadonlyArray<HostArgument>; result: HostResult };

/** `pack` takes time that grows with `bytes`, which the recording has before values are hidden. */
export type EndedRecording = { bytes: number; pack(): Buffer | null };

/** The recording of one execution while it runs. */
export class Recording {
  readonly #of: RecordingOf;
  readonly #secrets: readonly string[];
  readonly #calls: KeptCall[] = [];
  #bytes: number;

  constructor(of: RecordingOf) {
    this.#of = of;
    this.#secrets = of.secretFields.map(name => of.plugin.config[name] ?? '');
    this.#bytes = of.event.length + (of.body?.length ?? 0);
  }

  /** Adds a host call with its answer. @returns the answer */
  add(name: string, args: ReadonlyArray<HostArgument>, result: HostResult): HostResult {
    const { body, code } = result;
    const data = result.handedOver ?? result.data;
    for (const value of [...args, data, body]) if (isLong(value)) this.#bytes += value.length;
    if (this.#bytes > LIMITS.recordingBytesMax) return result;
    // Transferred buffers go to the other thread, and leave nothing here.
    const kept = result.handedOver === undefined ? data : Uint8Array.from(result.handedOver);
    this.#calls.push({
      name,
      args,
      result: { code, ...(kept === undefined ? {} : { data: kept }), ...(body === undefined ? {} : { body }) },
    });
    return result;
  }

  /**
   * Makes a host call and adds it with its answer. What `run` throws reaches the guest as `internal`, so this is added.
   *
   * @returns the answer
   * @throws what `run` throws
   */
  answer(
    name: string,
    args: ReadonlyArray<HostArgument>,
    run: () => HostResult | Promise<HostResult>,
  ): HostResult | Promise<HostResult> {
    const failed = (error: unknown): never => {
      this.add(name, args, hostError(HOST_ERROR.internal));
      throw error;
    };
    let result: HostResult | Promise<HostResult>;
    try {
      result = run();
    } catch (error) {
      return failed(error);
    }
    return result instanceof Promise ? result.then(r => this.add(name, args, r), failed) : this.add(name, args, result);
  }

  /** The recording of an execution that has ended, to be packed when it is kept. */
  ended(outcome: ExecutionOutcome, status: number): EndedRecording {
    return { bytes: this.#bytes + outcome.body.length, pack: () => this.pack(outcome, status) };
  }

  /** @returns the recording as JSON; null when it is larger than the limit, or hides more values than can be searched */
  pack(outcome: ExecutionOutcome, status: number): Buffer | null {
    if (this.#bytes + outcome.body.length > LIMITS.recordingBytesMax) return null;
    const masker = new Masker(this.#secrets);
    let recorded = this.#recorded(outcome, status, masker);
    if (masker.found.size > FOUND_MAX) return null;
    if (masker.found.size > 0) recorded = this.#recorded(outcome, status, new Masker(this.#secrets, masker.found));
    const text = Buffer.from(JSON.stringify(recorded));
    return text.length > LIMITS.recordingBytesMax ? null : text;
  }

  #recorded(
    { body, drawn, failure, headers, kind }: ExecutionOutcome,
    status: number,
    masker: Masker,
  ): RecordedExecution {
    const { event, plugin, secretFields, trigger } = this.#of;
    const config = Object.entries(plugin.config).map(([name, value]) => [
      name,
      secretFields.includes(name) ? MASKED : masker.text(value),
    ]);
    const answers = new Answers(masker);
    return {
      format: 1,
      plugin_id: plugin.id,
      version: plugin.version,
      module_sha256: plugin.sha256,
      trigger,
      event: withKind(masker.text(event), event),
      body: this.#of.body === null ? null : masker.value(this.#of.body),
      config: Object.fromEntries(config),
      // A call as it is kept: of most executions nothing is kept, so it is made at the end.
      calls: this.#calls.map(({ args, name, result }) => {
        const masked = result.data === undefined ? null : answers.masked(name, args, result.data);
        return {
          function: name,
          arguments: args.map(value => masker.value(value)),
          code:
            masked === null || result.data === undefined ? result.code : lengthAgain(result.code, result.data, masked),
          data: masked,
          body: result.body === undefined ? null : masker.value(result.body),
        };
      }),
      ...(drawn === undefined ? {} : { drawn: Buffer.from(drawn).toString('base64') }),
      outcome: {
        kind,
        failure: masker.text(failure),
        status,
        headers: masker.headers(headers),
        body: masker.value(body),
      },
    };
  }
}

const kindShape = z.looseObject({ kind: z.string() });

/** A masked event with the kind it had: a replay begins by it. */
function withKind(masked: string, event: string): string {
  const [before, after] = [event, masked].map(text => kindShape.safeParse(isJson(text) ? JSON.parse(text) : null));
  if (before?.success !== true || after?.success !== true || before.data.kind === after.data.kind) return masked;
  return JSON.stringify({ ...after.data, kind: before.data.kind });
}

const page = z.object({
  columns: z.array(z.object({ name: z.string() })).optional(),
  rows: z.array(z.unknown()),
  cursor: z.number().nullable(),
});

/** Answers of host calls, in the order they were given. */
class Answers {
  readonly #masker: Masker;
  /** Names of columns, by cursor: only the first page of rows has them. */
  readonly #columns = new Map<number, readonly string[]>();

  constructor(masker: Masker) {
    this.#masker = masker;
  }

  masked(name: string, args: readonly HostArgument[], data: string | Uint8Array): RecordedValue {
    const text = typeof data === 'string' ? data : textOf(data);
    if (text === null || !isJson(text)) return this.#masker.value(data);
    if (name === 'kv_get_many') return maskMany(text, this.#masker);
    if (name !== 'sql_query' && name !== 'sql_fetch') return this.#masker.value(text);
    const read = page.safeParse(JSON.parse(text));
    if (!read.success) return this.#masker.value(text);
    const { columns, cursor } = read.data;
    const names = columns?.map(column => column.name) ?? this.#columns.get(Number(args[0])) ?? [];
    if (cursor !== null) this.#columns.set(cursor, names);
    return this.#masker.rows(text, names);
  }
}

/** A result that is the length of its data, for the data as it is kept. */
function lengthAgain(code: number, data: string | Uint8Array, masked: RecordedValue): number {
  const flag = code < 0 ? 0 : code & END_OF_FILE;
  return code >= 0 && (code & ~END_OF_FILE) === Buffer.byteLength(data) ? recordedBytes(masked).length | flag : code;
}

const isLong = (value: HostArgument | undefined): value is string | Uint8Array =>
  typeof value === 'string' || value instanceof Uint8Array;
