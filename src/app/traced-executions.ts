import type { HostResult } from '../abi/host-result.ts';
import type { Span, Tracing } from '../base/tracing.ts';
import type { Execution } from '../execution/execute.ts';
import type { HostCall } from '../host/host-functions.ts';

/** Spans of executions and of their host calls (docs/operating.md "Traces"). */
export type TracedExecutions = {
  /** Gives an execution a span, which ends with it. */
  ofExecution(execution: Execution<HostCall>): Execution<HostCall>;
  /** Runs a host call in a span of its own, below which everything it asks for is found. */
  ofHostCall(
    name: string,
    call: HostCall,
    run: () => HostResult | Promise<HostResult>,
  ): HostResult | Promise<HostResult>;
};

/** Host calls that ask another service; the others are answered here or by a store of this service. */
const ASKS_OTHERS = new Set(['http_request', 'sql_query', 'sql_execute']);

function endCall(span: Span, { code }: HostResult): void {
  if (code < 0) span.end({ 'plugin_host.host_error': code });
  else span.end();
}

export function tracedExecutions(tracing: Tracing): TracedExecutions {
  return {
    ofExecution(execution) {
      const { context: call, done } = execution;
      const attributes = {
        'plugin_host.plugin': call.plugin?.id ?? '',
        'plugin_host.trigger': call.trigger,
        'plugin_host.request_id': call.requestId,
      };
      const name = `execution ${attributes['plugin_host.plugin']} ${call.trigger}`;
      const span = call.span?.child(name, 'internal', attributes) ?? tracing.start(name, 'consumer', null, attributes);
      call.span = span;
      return {
        ...execution,
        done(outcome) {
          const measured = {
            'plugin_host.outcome': outcome.kind,
            'plugin_host.queue_wait_ms': outcome.queueWaitMs,
            'plugin_host.run_ms': outcome.runMs,
            'plugin_host.host_calls': outcome.hostCalls,
          };
          if (outcome.kind === 'ok') span.end(measured);
          else span.end(measured, outcome.kind);
          done(outcome);
        },
      };
    },
    ofHostCall(name, call, run) {
      const before = call.span;
      if (before === null) return run();
      const span = before.child(name, ASKS_OTHERS.has(name) ? 'client' : 'internal');
      call.span = span;
      const ended = (result: HostResult): HostResult => {
        call.span = before;
        endCall(span, result);
        return result;
      };
      const failed = (error: unknown): never => {
        call.span = before;
        span.end({}, 'internal');
        throw error;
      };
      try {
        const result = run();
        return result instanceof Promise ? result.then(ended, failed) : ended(result);
      } catch (error) {
        return failed(error);
      }
    },
  };
}
