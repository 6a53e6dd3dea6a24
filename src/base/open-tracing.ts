import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Context,
  SpanKind as OtelKind,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Log } from './log.ts';
import { Seldom } from './seldom.ts';
import type { Span, SpanAttributes, SpanKind, Tracing } from './tracing.ts';
import { serviceVersion } from './version.ts';

const KINDS: Record<SpanKind, OtelKind> = {
  internal: OtelKind.INTERNAL,
  server: OtelKind.SERVER,
  client: OtelKind.CLIENT,
  producer: OtelKind.PRODUCER,
  consumer: OtelKind.CONSUMER,
};
/** What waits to be sent; spans beyond it are dropped, so that a receiver that is away costs a bounded amount of memory. */
const WAITING_MAX = 8192;
const BATCH_MAX = 512;
const SEND_EVERY_MS = 1000;
const SEND_MS = 5000;
const CLOSE_MS = 2000;

const propagator = new W3CTraceContextPropagator();
const reading = {
  get: (headers: Readonly<Record<string, string>>, name: string) => headers[name],
  keys: (headers: Readonly<Record<string, string>>) => Object.keys(headers),
};
const writing = {
  set(headers: Record<string, string>, name: string, value: string) {
    headers[name] = value;
  },
};

/** Warns of spans that were not sent, once a minute: a receiver that is away must not fill the log. */
function warning(inner: SpanExporter, endpoint: string, log: Log): SpanExporter {
  const seldom = new Seldom();
  return {
    export: (spans, done) =>
      inner.export(spans, result => {
        const error = result.error?.message ?? '';
        if (result.code !== 0)
          seldom.line('', more => log.warn({ endpoint, error, ...more }, 'traces could not be sent'));
        done(result);
      }),
    shutdown: () => inner.shutdown(),
    forceFlush: async () => await inner.forceFlush?.(),
  };
}

/**
 * Sends spans to a receiver of OpenTelemetry (OTLP over HTTP, https://opentelemetry.io/docs/specs/otlp/), in batches.
 *
 * @param endpoint address of the receiver; spans go to `/v1/traces` below it
 * @param ratio share of the traces that begin here and are sent, 0 to 1; of others the caller decides
 */
export function openTracing(endpoint: string, ratio: number, log: Log): Tracing {
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/$/, '')}/v1/traces`,
    timeoutMillis: SEND_MS,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'plugin-host',
      'service.version': serviceVersion(),
      'host.name': hostname(),
      'process.pid': process.pid,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: warning(exporter, endpoint, log),
        maxQueueSize: WAITING_MAX,
        maxExportBatchSize: BATCH_MAX,
        scheduledDelayMillis: SEND_EVERY_MS,
        exportTimeoutMillis: SEND_MS,
      }),
    ],
  });
  const tracer = provider.getTracer('plugin-host', serviceVersion());
  const begin = (name: string, kind: SpanKind, parent: Context, attributes: SpanAttributes): Span =>
    spanOf(tracer.startSpan(name, { kind: KINDS[kind], attributes }, parent), parent, begin);
  return {
    start: (name, kind, from, attributes = {}) =>
      begin(name, kind, from === null ? ROOT_CONTEXT : propagator.extract(ROOT_CONTEXT, from, reading), attributes),
    async close() {
      const late = sleep(CLOSE_MS, undefined, { ref: false });
      await Promise.race([provider.shutdown().catch(() => {}), late]);
    },
  };
}

function spanOf(
  span: OtelSpan,
  parent: Context,
  begin: (name: string, kind: SpanKind, parent: Context, attributes: SpanAttributes) => Span,
): Span {
  const context = trace.setSpan(parent, span);
  return {
    traceId: span.spanContext().traceId,
    get headers() {
      const headers: Record<string, string> = {};
      propagator.inject(context, headers, writing);
      return headers;
    },
    child: (name, kind = 'internal', attributes = {}) => begin(name, kind, context, attributes),
    describe(name, attributes) {
      if (name !== null) span.updateName(name);
      span.setAttributes(attributes);
    },
    end(attributes = {}, failure) {
      if (!span.isRecording()) return;
      span.setAttributes(attributes);
      if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
      span.end();
    },
  };
}
