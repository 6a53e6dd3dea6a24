import { TOKEN } from './service.ts';

/** A stream of server-sent events, as an administrator's program reads it. */
export type Watched = {
  contentType: string | null;
  /** All that came, once the pattern is in it; what came until then when it does not come. */
  until(pattern: RegExp, ms?: number): Promise<string>;
  /** How it ended: by the service, or by leaving. */
  ended: Promise<'ended' | 'left'>;
  leave(): void;
};

/** @param path below `/api/admin/`, with its query */
export async function watchStream(base: string, path: string, headers: Record<string, string> = {}): Promise<Watched> {
  const leaving = new AbortController();
  const response = await fetch(`${base}/api/admin/${path}`, {
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
    signal: leaving.signal,
  });
  let text = '';
  const read = async (): Promise<'ended'> => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true });
    return 'ended';
  };
  return {
    contentType: response.headers.get('content-type'),
    async until(pattern, ms = 20_000) {
      const end = performance.now() + ms;
      while (!pattern.test(text) && performance.now() < end) await new Promise(r => setTimeout(r, 20));
      return text;
    },
    ended: read().catch(() => 'left' as const),
    leave: () => leaving.abort(),
  };
}
