import readline from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import { messageOf } from '../base/errors.ts';
import { parseExactJson, textWithBigints } from '../base/exact-json.ts';
import type { OutgoingAnswer } from './memory-host.ts';
import { type CallOptions, type HostOptions, type TestHost, testHost } from './test-host.ts';
import { testCaller } from './test-refusal.ts';

/**
 * Test hosts for programs in other languages: `plugin test --serve`, which `sdk/go/kit/plugintest` starts. Each line of the input and of
 * the output is one JSON value. A question has an `id` and gets a line with the same `id`; what the plugin asks of others comes as a line
 * with `ask`, and is answered by one with `answer`. Bytes are in base64.
 */

const bytes = z.base64().transform(text => Buffer.from(text, 'base64'));
const as = z
  .strictObject({
    user: z.int(),
    service_key: z.int(),
    headers: z.record(z.string(), z.string()),
    access: testCaller,
    kv: z.record(z.string(), z.string()),
    grant: z.array(z.string()),
    files: z.array(z.string()),
    from: z.string(),
    body: z.unknown(),
    body_bytes: bytes,
  })
  .partial();
const file = z.object({ name: z.string(), bytes: bytes.nullable(), mime_type: z.string(), file_type: z.string() });

const question = z.discriminatedUnion('do', [
  z.object({
    do: z.literal('open'),
    with: z.object({
      folder: z.string(),
      config: z.record(z.string(), z.string()).nullable(),
      timeout_ms: z.int(),
      answers_http: z.boolean(),
      plugins: z.record(z.string(), z.array(z.string())),
    }),
  }),
  z.object({ do: z.literal('http'), with: z.object({ request: z.string(), as }) }),
  z.object({ do: z.literal('message'), with: z.object({ text: z.string(), as }) }),
  z.object({ do: z.literal('call'), with: z.object({ name: z.string(), value: z.unknown().optional(), as }) }),
  z.object({ do: z.literal('add_file'), with: z.object({ file }) }),
  z.object({ do: z.literal('kv'), with: z.object({ key: z.string() }) }),
  z.object({ do: z.enum(['files', 'requests', 'notifications', 'events', 'close']) }),
]);
type Question = z.infer<typeof question>;
const line = z.union([
  z.object({
    answer: z.int(),
    response: z
      .object({ status: z.int(), headers: z.record(z.string(), z.string()).nullable(), body: bytes.nullable() })
      .partial()
      .optional(),
    value: z.unknown().optional(),
    error: z.string().optional(),
  }),
  z.object({ id: z.int(), host: z.int() }).and(question),
]);
type Answered = Extract<z.infer<typeof line>, { answer: number }>;

class TestServer {
  readonly #out: Writable;
  readonly #hosts = new Map<number, Promise<TestHost>>();
  readonly #asked = new Map<number, (answer: Answered) => void>();
  #asks = 0;

  constructor(out: Writable) {
    this.#out = out;
  }

  hear(text: string): void {
    const value = parseExactJson(text);
    const heard = line.safeParse(value);
    if (!heard.success) {
      const { id } = z.object({ id: z.number().default(0) }).parse(value);
      return this.#write({ id, error: `the test asks for what there is not: ${z.prettifyError(heard.error)}` });
    }
    if ('answer' in heard.data) {
      this.#asked.get(heard.data.answer)?.(heard.data);
      this.#asked.delete(heard.data.answer);
      return;
    }
    const { host, id } = heard.data;
    this.#do(host, heard.data).then(
      ok => this.#write({ id, ok: ok ?? null }),
      (error: unknown) => this.#write({ id, error: messageOf(error) }),
    );
  }

  /** Ends the threads of hosts that were not closed: their program has ended. */
  async close(): Promise<void> {
    for (const host of this.#hosts.values()) await host.then(h => h.close()).catch(() => {});
  }

  #write(value: object): void {
    this.#out.write(`${textWithBigints(value)}\n`);
  }

  #ask(host: number, what: object): Promise<Answered> {
    const ask = ++this.#asks;
    return new Promise((resolve, reject) => {
      this.#asked.set(ask, answer => (answer.error === undefined ? resolve(answer) : reject(new Error(answer.error))));
      this.#write({ ask, host, ...what });
    });
  }

  /** What is outside the sandbox, as the test's program answers it. */
  #outside(host: number, { answers_http, plugins }: Extract<Question, { do: 'open' }>['with']): HostOptions {
    const call = (plugin: string, name: string) => async (value: unknown) =>
      (await this.#ask(host, { plugin, name, value: value ?? null })).value ?? null;
    const http = async (request: { method: string; url: string; headers: Record<string, string>; body: Uint8Array }) =>
      outgoing((await this.#ask(host, { request: { ...request, body: base64(request.body) } })).response ?? {});
    return {
      ...(answers_http ? { http } : {}),
      plugins: Object.fromEntries(
        Object.entries(plugins).map(([plugin, names]) => [
          plugin,
          Object.fromEntries(names.map(name => [name, call(plugin, name)])),
        ]),
      ),
    };
  }

  async #do(number: number, q: Question): Promise<unknown> {
    if (q.do === 'open') {
      const { config, folder, timeout_ms } = q.with;
      const opened = testHost({
        folder,
        config: config ?? {},
        ...(timeout_ms === 0 ? {} : { timeoutMs: timeout_ms }),
        ...this.#outside(number, q.with),
      });
      this.#hosts.set(number, opened);
      await opened;
      return null;
    }
    const host = await this.#hosts.get(number);
    if (host === undefined) throw new Error('the host is closed');
    switch (q.do) {
      case 'http': {
        const {
          bytes: body,
          failure,
          headers,
          logs,
          outcome,
          status,
        } = await host.http(q.with.request, optionsOf(q.with.as));
        return { failure, headers, logs, outcome, status, body: base64(body) };
      }
      case 'message':
        return await host.message(q.with.text, optionsOf(q.with.as));
      case 'call': {
        const {
          bytes: output,
          failure,
          logs,
          outcome,
        } = await host.call(q.with.name, q.with.value ?? null, optionsOf(q.with.as));
        return { failure, logs, outcome, bytes: base64(output) };
      }
      case 'add_file': {
        const { bytes: content, file_type, mime_type, name } = q.with.file;
        const more = { ...(mime_type === '' ? {} : { mime_type }), ...(file_type === '' ? {} : { file_type }) };
        return host.addFile(name, content ?? Buffer.alloc(0), more);
      }
      case 'kv':
        return host.kvText(q.with.key);
      case 'files':
        return [...host.files.values()].map(f => ({ ...f, bytes: base64(f.bytes) }));
      case 'requests':
        return host.requests.map(r => ({ ...r, body: base64(r.body) }));
      case 'close':
        this.#hosts.delete(number);
        return await host.close();
      default:
        return host[q.do];
    }
  }
}

const base64 = (content: Uint8Array): string => Buffer.from(content).toString('base64');

const outgoing = ({ body, headers, status }: NonNullable<Answered['response']>): OutgoingAnswer => ({
  ...(status === undefined ? {} : { status }),
  ...(headers == null ? {} : { headers }),
  ...(body == null ? {} : { body }),
});

/** The options of a call, without those that were not set. */
function optionsOf({
  body,
  body_bytes,
  service_key,
  ...more
}: z.infer<typeof as>): CallOptions & { files?: string[]; from?: string } {
  const content = body_bytes ?? body;
  return {
    ...more,
    ...(service_key === undefined ? {} : { serviceKey: service_key }),
    ...(content === undefined ? {} : { body: content }),
  };
}

/** Answers the questions of a test's program until its input ends. */
export async function serveTests(input: Readable, out: Writable): Promise<void> {
  const server = new TestServer(out);
  for await (const text of readline.createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }))
    if (text !== '') server.hear(text);
  await server.close();
}
