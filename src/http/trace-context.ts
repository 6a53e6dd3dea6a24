import http from 'node:http';
import type { Span, Tracing } from '../base/tracing.ts';

/** `traceparent` of a W3C trace context: version (ff is none), trace id, parent id, flags; later versions may append. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/;

/** Trace id of the caller's trace context, or empty when it sent none that is valid. */
export function traceIdOf(headers: Readonly<Record<string, string>>): string {
  const given = headers.traceparent;
  // Version 00 has nothing behind its flags.
  if (given === undefined || (given.startsWith('00-') && given.length !== 55)) return '';
  return TRACEPARENT.exec(given)?.[1] ?? '';
}

const METHODS: ReadonlySet<string> = new Set([...http.METHODS, 'QUERY']);

/** A method as attribute of a span: others than the registered ones have no end (OpenTelemetry, http.request.method). */
const methodName = (method: string): string => (METHODS.has(method) ? method : '_OTHER');

/**
 * The span of a request; what it asked for is known later. Neither its path nor its query stands in it: both may name persons.
 *
 * @param trusted whether the caller may say which trace it belongs to and whether it is sent; a stranger's stands as an attribute
 */
export function requestSpan(
  tracing: Tracing,
  method: string,
  headers: Readonly<Record<string, string>>,
  requestId: string,
  trusted: boolean,
): Span {
  const caller = trusted ? '' : traceIdOf(headers);
  return tracing.start('HTTP', 'server', trusted ? headers : null, {
    'http.request.method': methodName(method),
    'plugin_host.request_id': requestId,
    ...(caller === '' ? {} : { 'plugin_host.caller_trace_id': caller }),
  });
}
