import { openStream } from './client.ts';

/** One event of a stream of server-sent events; without data it only says how far the stream is. */
export type Streamed = { id: string; type: string; data: string };

/** The service sends at least a comment every five seconds. */
const SILENT_MS = 20_000;

/** Reads blocks of a stream (HTML Living Standard, "Server-sent events"), which may arrive in any pieces. */
export class EventStreamParser {
  #rest = '';

  /** @returns the events that are whole now */
  take(text: string): Streamed[] {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    return blocks.map(blockOf).filter(e => e !== null);
  }
}

function blockOf(block: string): Streamed | null {
  const lines = block.split('\n').map(line => /^(\w+): ?(.*)$/.exec(line));
  const fieldOf = (name: string): string[] => lines.flatMap(m => (m?.[1] === name ? [m[2] ?? ''] : []));
  const data = fieldOf('data');
  const [id] = fieldOf('id');
  // A comment says only that the other end is there.
  if (data.length === 0 && id === undefined) return null;
  return { id: id ?? '', type: fieldOf('event')[0] ?? '', data: data.join('\n') };
}

/**
 * Follows a stream until it ends.
 *
 * @param after number of the event behind which it begins; empty for what comes from now on
 * @throws ApiProblem when it is refused, and what the network says when it breaks
 */
export async function followEvents(
  path: string,
  after: string,
  signal: AbortSignal,
  on: { open(): void; event(event: Streamed): void },
): Promise<void> {
  const response = await openStream(path, after === '' ? {} : { 'Last-Event-ID': after }, signal);
  if (response.body === null) return;
  on.open();
  const parser = new EventStreamParser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    // A connection that is gone without a word, as after a sleep, would look alive for ever.
    const silent = setTimeout(() => void reader.cancel(), SILENT_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silent));
    if (done) return;
    for (const event of parser.take(value)) on.event(event);
  }
}
