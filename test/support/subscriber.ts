import http from 'node:http';
import { Webhook } from 'standardwebhooks';
import { listenFor } from './listen.ts';
import type { Json } from './service.ts';

/** An event as a subscriber has taken it. */
export type Taken = {
  type: string;
  source: string;
  data: Json;
  id: string;
  raw: string;
  headers: http.IncomingHttpHeaders;
};

/** A subscriber of events: it verifies every signature with the public library and keeps what it takes. */
export class Subscriber {
  readonly taken: Taken[] = [];
  /** Status of the answers to come instead of 200; `null`: no answer at all. */
  readonly faults: Array<number | null> = [];
  /** Calls that were not signed well. */
  readonly unsigned: string[] = [];
  attempts = 0;
  secret = '';
  url = '';
  isDown = false;
  /** How long each answer takes. */
  slowMs = 0;

  async until(count: number, ms = 30_000): Promise<Taken[]> {
    const end = performance.now() + ms;
    while (this.taken.length < count && performance.now() < end) await new Promise(r => setTimeout(r, 20));
    if (this.taken.length < count) throw new Error(`${this.taken.length} of ${count} events have come`);
    return this.taken;
  }
}

export async function startSubscriber(t: { teardown(fn: () => unknown): void }): Promise<Subscriber> {
  const subscriber = new Subscriber();
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (c: Buffer) => chunks.push(c));
    request.on('end', async () => {
      subscriber.attempts++;
      if (subscriber.slowMs > 0) await new Promise(r => setTimeout(r, subscriber.slowMs));
      if (subscriber.isDown) return void request.socket.destroy();
      const fault = subscriber.faults.shift();
      if (fault === null) return;
      if (fault !== undefined)
        return void response.writeHead(fault, fault === 302 ? { location: '/elsewhere' } : {}).end();
      const raw = Buffer.concat(chunks).toString();
      try {
        const header = (name: string): string => String(request.headers[name]);
        new Webhook(subscriber.secret).verify(raw, {
          'webhook-id': header('webhook-id'),
          'webhook-timestamp': header('webhook-timestamp'),
          'webhook-signature': header('webhook-signature'),
        });
        const { data, id, source, type } = JSON.parse(raw);
        subscriber.taken.push({ data, id, source, type, raw, headers: request.headers });
      } catch (error) {
        subscriber.unsigned.push(String(error));
      }
      response.writeHead(200).end();
    });
  });
  subscriber.url = `${await listenFor(t, server)}/events?key=k`;
  return subscriber;
}
