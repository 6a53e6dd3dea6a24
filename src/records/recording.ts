import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import type { HostArgument, HostResult } from '../abi/host-result.ts';
import { LIMITS } from '../base/limits.ts';
import { MASKED, maskHeaders, maskText } from '../base/mask-text.ts';
import type { RecordedCall, RecordedExecution, RecordedValue } from './recorded-execution.ts';

/** What an execution was given and what its host calls got, to run it again (docs/plugins.md "Recordings"). */

export type RecordingOf = {
  plugin: { id: string; version: string; config: Readonly<Record<string, string>> };
  trigger: string;
  /** Names of the configuration fields that are secret. */
  secretFields: readonly string[];
  event: string;
  body: Uint8Array | null;
};

/** Shorter secrets would hide parts of ordinary words. */
const SECRET_CHARACTERS_MIN = 4;

/** Takes secrets and personal data out of values: as the support bundle does, and what the configuration keeps secret. */
export class Masker {
  readonly #secrets: readonly string[];

  constructor(secrets: readonly string[]) {
    const long = secrets.filter(secret => secret.length >= SECRET_CHARACTERS_MIN);
    // As they are, and as they stand in JSON and in addresses.
    const all = long.flatMap(s => [s, JSON.stringify(s).slice(1, -1), encodeURIComponent(s)]);
    // The longest first: one may be the beginning of another.
    this.#secrets = [...new Set(all)].sort((a, b) => b.length - a.length);
  }

  text(text: string): string {
    return maskText(this.#withoutSecrets(text));
  }

  /** Headers as `name NUL value NUL`. */
  headers(flat: string): string {
    return maskHeaders(this.#withoutSecrets(flat));
  }

  #withoutSecrets(text: string): string {
    let masked = text;
    for (const secret of this.#secrets) masked = masked.replaceAll(secret, MASKED);
    return masked;
  }

  value(value: HostArgument): RecordedValue {
    if (typeof value === 'number') return value;
    if (typeof value === 'bigint') return { int64: String(BigInt.asIntN(64, value)) };
    if (typeof value === 'string') return this.text(value);
    const text = textOf(value);
    return text === null ? { base64: Buffer.from(value).toString('base64') } : this.text(text);
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
  readonly #masker: Masker;
  readonly #calls: KeptCall[] = [];
  #bytes: number;

  constructor(of: RecordingOf) {
    this.#of = of;
    this.#masker = new Masker(of.secretFields.map(name => of.plugin.config[name] ?? ''));
    this.#bytes = of.event.length + (of.body?.length ?? 0);
  }

  /** Adds a host call with its answer. @returns the answer */
  add(name: string, args: ReadonlyArray<HostArgument>, result: HostResult): HostResult {
    const { body, code } = result;
    const data = result.handedOver ?? result.data;
    for (const value of [...args, data, body]) if (isLong(value)) this.#bytes += value.length;
    if (this.#bytes > LIMITS.recordingBytesMax) return result;
    // What is handed over goes to another thread, and leaves nothing here.
    const kept = result.handedOver === undefined ? data : Uint8Array.from(result.handedOver);
    this.#calls.push({
      name,
      args,
      result: { code, ...(kept === undefined ? {} : { data: kept }), ...(body === undefined ? {} : { body }) },
    });
    return result;
  }

  /** A call as it is kept: of most executions nothing is kept, so it is made at the end. */
  #recorded({ args, name, result: { body, code, data } }: KeptCall): RecordedCall {
    const masked = data === undefined ? null : this.#masked(name, data);
    return {
      function: name,
      arguments: args.map(value => this.#masker.value(value)),
      code: masked === null || data === undefined ? code : lengthAgain(code, data, masked),
      data: masked,
      body: body === undefined ? null : this.#masker.value(body),
    };
  }

  #masked(name: string, data: string | Uint8Array): RecordedValue {
    const text = typeof data === 'string' ? data : textOf(data);
    return name === 'kv_get_many' && text !== null ? maskMany(text, this.#masker) : this.#masker.value(data);
  }

  /** @returns the recording as JSON; null when it is larger than the limit */
  pack({ body, failure, headers, kind }: ExecutionOutcome, status: number): Buffer | null {
    this.#bytes += body.length;
    if (this.#bytes > LIMITS.recordingBytesMax) return null;
    const masker = this.#masker;
    const { event, plugin, secretFields, trigger } = this.#of;
    const config = Object.entries(plugin.config).map(([name, value]) => [
      name,
      secretFields.includes(name) ? MASKED : masker.text(value),
    ]);
    const recorded: RecordedExecution = {
      format: 1,
      plugin_id: plugin.id,
      version: plugin.version,
      trigger,
      event: masker.text(event),
      body: this.#of.body === null ? null : masker.value(this.#of.body),
      config: Object.fromEntries(config),
      calls: this.#calls.map(call => this.#recorded(call)),
      outcome: {
        kind,
        failure: masker.text(failure),
        status,
        headers: masker.headers(headers),
        body: masker.value(body),
      },
    };
    const text = Buffer.from(JSON.stringify(recorded));
    return text.length > LIMITS.recordingBytesMax ? null : text;
  }
}

/** A result that is the length of its data, for the data as it is kept. */
function lengthAgain(code: number, data: string | Uint8Array, masked: RecordedValue): number {
  const flag = code < 0 ? 0 : code & END_OF_FILE;
  return code >= 0 && (code & ~END_OF_FILE) === Buffer.byteLength(data) ? recordedBytes(masked).length | flag : code;
}

const isLong = (value: HostArgument | undefined): value is string | Uint8Array =>
  typeof value === 'string' || value instanceof Uint8Array;
