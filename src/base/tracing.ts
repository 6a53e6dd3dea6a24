/** Spans of a trace (docs/operating.md "Traces"); without `tracing.endpoint` there are none. */

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;
export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

export type Span = {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** `traceparent`, and `tracestate` when there is one, which lead what is asked next into this trace (W3C Trace Context). */
  readonly headers: Readonly<Record<string, string>>;
  /** Begins a span below this one. */
  child(name: string, kind?: SpanKind, attributes?: SpanAttributes): Span;
  /** Says what it turned out to be. @param name null: as before */
  describe(name: string | null, attributes: SpanAttributes): void;
  /** Ends it, once. @param failure why what it measures failed; left out when it did not */
  end(attributes?: SpanAttributes, failure?: string): void;
};

export type Tracing = {
  /**
   * Begins the first span of this service.
   *
   * @param from headers of what asked, whose trace it goes on with when they name one; null: a trace of its own
   */
  start(name: string, kind: SpanKind, from: Readonly<Record<string, string>> | null, attributes?: SpanAttributes): Span;
  /** Sends what is left, for two seconds at most. */
  close(): Promise<void>;
};

/** Runs work, and ends its span with it. @param errorType what an error is called in the span; never its text, which may name persons */
export function traced<T>(
  span: Span,
  errorType: (error: unknown) => string,
  work: () => T | Promise<T>,
): T | Promise<T> {
  const failed = (error: unknown): never => {
    span.end({ 'error.type': errorType(error) });
    throw error;
  };
  try {
    const result = work();
    if (result instanceof Promise)
      return result.then(value => {
        span.end();
        return value;
      }, failed);
    span.end();
    return result;
  } catch (error) {
    return failed(error);
  }
}
