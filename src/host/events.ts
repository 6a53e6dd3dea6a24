import { createHash } from 'node:crypto';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostResult, hostError } from '../abi/host-result.ts';
import { JsonBoundError, parseBoundedJson } from '../base/bounded-json.ts';
import { messageOf } from '../base/errors.ts';
import { CallTooLate } from '../base/gatherer.ts';
import { LIMITS } from '../base/limits.ts';
import type { NewEvent } from '../events/publish.ts';
import type { HostHandler, MessageScope, PermittedCall } from './host-functions.ts';

/** Events of plugins (permission `events`, docs/abi.md `event_publish`, docs/events.md). */

const NAME = /^[A-Za-z0-9][\w.:/-]{0,127}$/;

/** Why a payload is refused, or null. */
function payloadProblem(text: string): string | null {
  try {
    parseBoundedJson(text);
    return null;
  } catch (error) {
    return error instanceof JsonBoundError ? messageOf(error) : 'it is not JSON';
  }
}

/** Why an event is refused, or null. @param data its payload, as JSON */
export function badEvent(type: string, data: string): HostResult | null {
  if (!NAME.test(type))
    return hostError(
      HOST_ERROR.invalid,
      'the name of an event has 1 to 128 letters, digits, _ . : / and -, and begins with a letter or digit',
    );
  if (Buffer.byteLength(data) > LIMITS.eventBytesMax)
    return hostError(HOST_ERROR.tooLarge, `the payload is larger than ${LIMITS.eventBytesMax} bytes (eventBytesMax)`);
  const problem = payloadProblem(data);
  return problem === null ? null : hostError(HOST_ERROR.invalid, `the payload is refused: ${problem}`);
}

/** @param publish stores the event and has it delivered; throws CallTooLate behind the deadline, and has stored nothing then */
export function eventHandlers(
  publish: (event: NewEvent, deadline: number) => Promise<void>,
): Record<'event_publish', HostHandler> {
  const published = new WeakMap<PermittedCall, number>();
  /** Of each plugin, in all executions for one message. */
  const ofMessage = new WeakMap<MessageScope, Map<string, number>>();
  const onceKeyOf = ({ message, plugin }: PermittedCall, digest: string): string | null => {
    if (message === null) return null;
    const counts = ofMessage.get(message) ?? new Map<string, number>();
    const count = (counts.get(plugin.id) ?? 0) + 1;
    ofMessage.set(message, counts.set(plugin.id, count));
    return `${message.key} ${plugin.id} ${count} ${digest}`;
  };
  return {
    async event_publish(call, args) {
      const type = args.text(0);
      const data = args.text(1);
      const bad = badEvent(type, data);
      if (bad !== null) return bad;
      const count = (published.get(call) ?? 0) + 1;
      if (count > LIMITS.eventsPerExecution)
        return hostError(
          HOST_ERROR.tooLarge,
          `one execution may publish ${LIMITS.eventsPerExecution} events (eventsPerExecution)`,
        );
      published.set(call, count);
      const digest = createHash('sha256').update(`${type}\0${data}`).digest('base64url');
      const event = {
        pluginId: call.plugin.id,
        type,
        data,
        requestId: call.requestId,
        traceparent: call.span?.headers.traceparent ?? '',
        // A second equal event gets another key and is published. A command that is run again, because
        // its host ended during the first run, repeats its keys and publishes nothing twice.
        onceKey: onceKeyOf(call, digest),
      };
      try {
        await publish(event, call.deadline);
      } catch (error) {
        if (error instanceof CallTooLate) return hostError(HOST_ERROR.deadline);
        throw error;
      }
      return { code: 0 };
    },
  };
}
