import { createHash } from 'node:crypto';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { hostError } from '../abi/host-result.ts';
import type { NewEvent } from '../events/publish.ts';
import { LIMITS } from '../limits.ts';
import type { HostHandler, PermittedCall } from './host-functions.ts';

/** Events of plugins (permission `events`, abi.md `event_publish`; decisions.md 7). */

const NAME = /^[A-Za-z0-9][\w.:/-]{0,127}$/;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** @param publish stores the event and has it delivered */
export function eventHandlers(publish: (event: NewEvent) => Promise<void>): Record<'event_publish', HostHandler> {
  const published = new WeakMap<PermittedCall, number>();
  return {
    async event_publish(call, args) {
      const type = args.text(0);
      const data = args.text(1);
      if (!NAME.test(type))
        return hostError(
          HOST_ERROR.invalid,
          'the name of an event has 1 to 128 letters, digits, _ . : / and -, and begins with a letter or digit',
        );
      if (Buffer.byteLength(data) > LIMITS.eventBytesMax)
        return hostError(
          HOST_ERROR.tooLarge,
          `the payload is larger than ${LIMITS.eventBytesMax} bytes (eventBytesMax)`,
        );
      if (!isJson(data)) return hostError(HOST_ERROR.invalid, 'the payload is not JSON');
      const count = (published.get(call) ?? 0) + 1;
      if (count > LIMITS.eventsPerExecution)
        return hostError(
          HOST_ERROR.tooLarge,
          `one execution publishes ${LIMITS.eventsPerExecution} events at most (eventsPerExecution)`,
        );
      published.set(call, count);
      const digest = createHash('sha256').update(`${type}\0${data}`).digest('base64url');
      await publish({
        pluginId: call.plugin.id,
        type,
        data,
        requestId: call.requestId,
        // The same event twice in one execution is meant so; a command that is run again after its host has ended publishes nothing anew.
        onceKey: call.message === null ? null : `${call.message.key} ${call.plugin.id} ${count} ${digest}`,
      });
      return { code: 0 };
    },
  };
}
