import http from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

/** Requests in numbers against one address, for `plugin-host bench`. */

export type LoadRequest = {
  url: URL;
  method: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer | null;
};

/** What a load found. Latencies in ms; a request that failed or was not answered counts as endless (null). */
export type Measured = {
  per_second: number;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  /** Requests that failed: no answer, or a status from 400 on. */
  failed: number;
  /** The statuses that came, and how often; 0 for no answer. */
  statuses: Record<string, number>;
  /** Share of one processor that this process used meanwhile: near 1 it is itself the limit. */
  generator: number;
};

const TICK_MS = 1;
/** How long one answer may take, and how long answers are waited for after the last request of a rate was due. */
const ANSWER_MS = 10_000;

/** Sends one request. @returns its status; 0 when there is no whole answer */
export async function sendOnce(request: LoadRequest): Promise<number> {
  const { close, send } = connect(request, 1);
  const status = await send();
  close();
  return status;
}

/** Connections that are kept. */
function connect(request: LoadRequest, connections: number) {
  const { body, method, url } = request;
  const headers = body === null ? request.headers : { ...request.headers, 'content-length': String(body.length) };
  const { Agent, request: open } = url.protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: connections, maxFreeSockets: connections });
  return {
    /** @returns the status, when the whole answer is there; 0 when there is none */
    send: (): Promise<number> =>
      new Promise(resolve => {
        const sent = open(url, { agent, method, headers, signal: AbortSignal.timeout(ANSWER_MS) }, answer => {
          answer.on('error', () => resolve(0));
          answer.once('end', () => resolve(answer.statusCode ?? 0)).resume();
        });
        sent.on('error', () => resolve(0));
        sent.end(body);
      }),
    close: (): void => agent.destroy(),
  };
}

/** Latencies and statuses of the requests of one load. */
class Answers {
  readonly #latencies: number[] = [];
  readonly #statuses = new Map<number, number>();
  readonly #cpu = process.cpuUsage();
  readonly #began = performance.now();
  #failed = 0;

  note(status: number, ms: number): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    if (status === 0 || status >= 400) this.#failed++;
    else this.#latencies.push(ms);
  }

  /**
   * @param unanswered requests that were due and were never answered
   * @param planned how long requests were due, in seconds; without it until now
   */
  measured(unanswered = 0, planned: number | null = null): Measured {
    const spent = (performance.now() - this.#began) / 1000;
    const seconds = planned ?? spent;
    const { system, user } = process.cpuUsage(this.#cpu);
    const sorted = Float64Array.from(this.#latencies).sort();
    const all = sorted.length + this.#failed + unanswered;
    const at = (share: number): number | null => {
      const k = Math.min(all - 1, Math.floor(all * share));
      return k >= 0 && k < sorted.length ? round(sorted[k] ?? 0, 3) : null;
    };
    if (unanswered > 0) this.#statuses.set(0, (this.#statuses.get(0) ?? 0) + unanswered);
    return {
      per_second: round(sorted.length / seconds, 1),
      p50_ms: at(0.5),
      p95_ms: at(0.95),
      p99_ms: at(0.99),
      failed: this.#failed + unanswered,
      statuses: Object.fromEntries([...this.#statuses].map(([status, n]) => [String(status), n])),
      generator: round((user + system) / 1e6 / spent, 2),
    };
  }
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

/** Closed loop: each connection sends its next request when it has its answer. */
export async function closedLoop(request: LoadRequest, connections: number, seconds: number): Promise<Measured> {
  const { close, send } = connect(request, connections);
  const answers = new Answers();
  const end = performance.now() + seconds * 1000;
  const client = async (): Promise<void> => {
    for (let at = performance.now(); at < end; at = performance.now())
      answers.note(await send(), performance.now() - at);
  };
  await Promise.all(Array.from({ length: connections }, client));
  close();
  return answers.measured();
}

/**
 * Open loop: requests leave at a fixed rate, as from callers who do not know of each other. A latency counts from when its request should
 * have left, so that a server that stands still is seen by all who would have come.
 */
export async function openLoop(
  request: LoadRequest,
  perSecond: number,
  connections: number,
  seconds: number,
): Promise<Measured> {
  const { close, send } = connect(request, connections);
  const answers = new Answers();
  const total = Math.max(1, Math.round(perSecond * seconds));
  const began = performance.now();
  const dueAt = (k: number): number => began + (k * 1000) / perSecond;
  let sent = 0;
  let answered = 0;
  let ended = false;
  // Requests wait here and not in the agent, which would go on to send them when all is over.
  const sendDue = (): void => {
    for (; !ended && sent - answered < connections && sent < total && dueAt(sent) <= performance.now(); sent++) {
      const due = dueAt(sent);
      void send().then(status => {
        answered++;
        if (!ended) answers.note(status, performance.now() - due);
        sendDue();
      });
    }
  };
  const last = dueAt(total) + ANSWER_MS;
  while (answered < total && performance.now() < last) {
    sendDue();
    await sleep(TICK_MS);
  }
  ended = true;
  const measured = answers.measured(total - answered, total / perSecond);
  close();
  return measured;
}
