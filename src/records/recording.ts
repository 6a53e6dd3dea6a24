import { z } from 'zod';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import { LIMITS } from '../base/limits.ts';
import { isJson, type JsonPlace, maskJson } from '../base/mask-json.ts';
import { type Hiding, isHiddenName, jsonMask, MASKED, maskHeaders, maskText } from '../base/mask-text.ts';
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
/** Shorter credentials of a request may be words that stand elsewhere, too. */
const CREDENTIAL_CHARACTERS_MIN = 8;
/** Each is searched in the whole recording. */
const CREDENTIALS_MAX = 100;

/** A secret as it is, and as it stands in JSON, in addresses and in forms. */
const spellings = (secret: string): string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret),
  new URLSearchParams([['', secret]]).toString().slice(1),
];

/** Bytes as text with a character for each, so that they come back as they were. */
const bytesText = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

/** Takes secrets and personal data out of values: as the support bundle does, and what the configuration keeps secret. */
export class Masker {
  readonly #secrets: readonly string[];
  /** Credentials that were found and hidden: in another place of the recording the same may stand without its name. */
  readonly found = new Set<string>();
  readonly #hiding: Hiding = {
    known: text => {
      let masked = text;
      for (const secret of this.#secrets) masked = masked.replaceAll(secret, MASKED);
      return masked;
    },
    onHidden: credential => {
      if (credential.length < CREDENTIAL_CHARACTERS_MIN || credential.includes(MASKED)) return;
      if (this.found.size < CREDENTIALS_MAX) this.found.add(credential);
    },
  };

  constructor(secrets: readonly string[]) {
    const all = secrets.filter(secret => secret.length >= SECRET_CHARACTERS_MIN).flatMap(spellings);
    // The longest first: one may be the beginning of another.
    this.#secrets = [...new Set(all)].sort((a, b) => b.length - a.length);
  }

  text(text: string): string {
    return maskText(text, this.#hiding);
  }

  /** Headers as `name NUL value NUL`. */
  headers(flat: string): string {
    return maskHeaders(flat, this.#hiding);
  }

  /** JSON of the database: the values of columns that are named like credentials are hidden. */
  rows(json: string, columns: ReadonlySet<number>): string {
    const hides = (places: readonly JsonPlace[]): boolean => {
      const inner = places.at(-1);
      if (places.length === 3 && places[0]?.name === 'rows' && columns.has(inner?.index ?? -1)) return true;
      return isHiddenName(inner?.name ?? '');
    };
    return maskJson(json, jsonMask(hides, this.#hiding));
  }

  value(value: HostArgument): RecordedValue {
    if (typeof value === 'number') return value;
    if (typeof value === 'bigint') return { int64: String(BigInt.asIntN(64, value)) };
    if (typeof value === 'string') return this.text(value);
    const text = textOf(value);
    return text === null ? { base64: this.#bytes(value) } : this.text(text);
  }

  #bytes(bytes: Uint8Array): string {
    let masked = bytesText(bytes);
    for (const secret of this.#secrets) masked = masked.replaceAll(bytesText(Buffer.from(secret)), MASKED);
    return Buffer.from(maskText(masked, this.#hiding), 'latin1').toString('base64');
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
  const masked = Object.entries(values).map(([key, value]) => [
    masker.text(key),
    value === null ? null : Buffer.from(recordedBytes(masker.value(Buffer.from(value, 'base64')))).toString('base64'),
  ]);
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

  /** @returns the recording as JSON; null when it is larger than the limit */
  pack(outcome: ExecutionOutcome, status: number): Buffer | null {
    this.#bytes += outcome.body.length;
    if (this.#bytes > LIMITS.recordingBytesMax) return null;
    const masker = new Masker(this.#secrets);
    let recorded = this.#recorded(outcome, status, masker);
    if (masker.found.size > 0)
      recorded = this.#recorded(outcome, status, new Masker([...this.#secrets, ...masker.found]));
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
      event: masker.text(event),
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

const page = z.object({
  columns: z.array(z.object({ name: z.string() })).optional(),
  rows: z.array(z.unknown()),
  cursor: z.number().nullable(),
});

/** Answers of host calls, in the order they were given. */
class Answers {
  readonly #masker: Masker;
  /** Columns that hold credentials, by cursor: only the first page of rows names its columns. */
  readonly #columns = new Map<number, ReadonlySet<number>>();

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
    const hidden =
      columns === undefined
        ? (this.#columns.get(Number(args[0])) ?? new Set())
        : new Set(columns.flatMap(({ name: column }, k) => (isHiddenName(column) ? [k] : [])));
    if (cursor !== null) this.#columns.set(cursor, hidden);
    return this.#masker.rows(text, hidden);
  }
}

/** A result that is the length of its data, for the data as it is kept. */
function lengthAgain(code: number, data: string | Uint8Array, masked: RecordedValue): number {
  const flag = code < 0 ? 0 : code & END_OF_FILE;
  return code >= 0 && (code & ~END_OF_FILE) === Buffer.byteLength(data) ? recordedBytes(masked).length | flag : code;
}

const isLong = (value: HostArgument | undefined): value is string | Uint8Array =>
  typeof value === 'string' || value instanceof Uint8Array;
