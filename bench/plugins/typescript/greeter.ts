/** The greeter of the benchmark in TypeScript on QuickJS: JSON in, JSON out. */

declare const __h: (handle: () => void) => void;
declare const __i: () => string | undefined;
declare const __n: () => number;
declare const __r: (status: number, headers: string, body: string) => number;
declare const __g: (key: string) => string | number;
declare const __s: (key: string, value: string) => number;

type Event = { trigger: string; http: { query: Record<string, string> } };
type Answer = { message: string; visits?: number; numbers?: number[] };

/** The engine's own generator would go on from the remembered start in each execution alike. */
Math.random = __n;

const HEADERS = JSON.stringify({ 'Content-Type': 'application/json' });

function visit(name: string): number {
  const before = __g(`visits:${name}`);
  const visits = typeof before === 'string' ? Number(before) + 1 : 1;
  const code = __s(`visits:${name}`, String(visits));
  return code < 0 ? code : visits;
}

async function handle(): Promise<void> {
  const { trigger, http }: Event = JSON.parse(__i() ?? '{"trigger":"greet","http":{"query":{}}}');
  const name = http.query.name ?? 'world';
  const answer: Answer = { message: `Hello, ${name}!` };
  if (trigger === 'visit') answer.visits = visit(name);
  if (trigger === 'draw') answer.numbers = [0, 0].map(() => Math.floor(Math.random() * 2 ** 53));
  __r(200, HEADERS, JSON.stringify(answer));
}

__h(handle);
