import http from 'node:http';
import { z } from 'zod';
import { listenFor } from './listen.ts';

const value = z.union([
  z.object({ stringValue: z.string() }).transform(v => v.stringValue),
  z.object({ intValue: z.coerce.number() }).transform(v => v.intValue),
  z.object({ doubleValue: z.number() }).transform(v => v.doubleValue),
  z.object({ boolValue: z.boolean() }).transform(v => v.boolValue),
]);
const attributes = z
  .array(z.object({ key: z.string(), value }))
  .transform(all => Object.fromEntries(all.map(a => [a.key, a.value])));
const span = z.object({
  traceId: z.string().length(32),
  spanId: z.string().length(16),
  parentSpanId: z.string().default(''),
  name: z.string(),
  kind: z.number(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes,
  status: z.object({ code: z.number(), message: z.string().optional() }),
});
const exported = z.object({
  resourceSpans: z.array(
    z.object({ resource: z.object({ attributes }), scopeSpans: z.array(z.object({ spans: z.array(span) })) }),
  ),
});

export type ReceivedSpan = z.infer<typeof span>;

/** A receiver of traces (OTLP over HTTP, JSON). */
export class TraceReceiver {
  readonly spans: ReceivedSpan[] = [];
  readonly resources: Array<Record<string, unknown>> = [];
  readonly paths = new Set<string>();
  raw = '';
  url = '';
  /** Status of the answers. */
  status = 200;
  calls = 0;

  take(path: string, text: string): void {
    this.paths.add(path);
    this.raw += text;
    for (const { resource, scopeSpans } of exported.parse(JSON.parse(text)).resourceSpans) {
      this.resources.push(resource.attributes);
      this.spans.push(...scopeSpans.flatMap(s => s.spans));
    }
  }

  /** Spans of a name, when there are so many of them. */
  async until(name: string | RegExp, count = 1, ms = 30_000): Promise<ReceivedSpan[]> {
    const end = performance.now() + ms;
    for (;;) {
      const found = this.spans.filter(s => (typeof name === 'string' ? s.name === name : name.test(s.name)));
      if (found.length >= count) return found;
      if (performance.now() > end)
        throw new Error(`${found.length} of ${count} spans ${name}: ${this.spans.map(s => s.name).join(', ')}`);
      await new Promise(r => setTimeout(r, 20));
    }
  }
}

export async function startTraceReceiver(t: { teardown(fn: () => unknown): void }): Promise<TraceReceiver> {
  const receiver = new TraceReceiver();
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    receiver.calls++;
    if (receiver.status === 200) receiver.take(request.url ?? '', Buffer.concat(chunks).toString());
    response.writeHead(receiver.status, { 'content-type': 'application/json' }).end('{}');
  });
  receiver.url = await listenFor(t, server);
  return receiver;
}
