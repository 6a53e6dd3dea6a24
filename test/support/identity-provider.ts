import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';

export const CLIENT = { id: 'plugin-host', secret: 'a secret of the client' };

export type IdentityProvider = {
  issuer: string;
  /** Until then every request is answered with 503. */
  open(redirectUri: string): void;
  shut(): void;
  /** Answers requests for tokens with 503 from now on, or no longer. */
  refuseTokens(on: boolean): void;
  close(): Promise<void>;
};

/**
 * A real OpenID Connect provider on loopback. Typing a name logs in as that account; `name` and `locale` follow from
 * it.
 */
export async function startIdentityProvider(): Promise<IdentityProvider> {
  let refusesTokens = false;
  let answer: ((req: http.IncomingMessage, res: http.ServerResponse) => void) | null = null;
  const server = http.createServer((req, res) => {
    if (answer === null || (refusesTokens && req.url === '/token')) return void res.writeHead(503).end();
    answer(req, res);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    open(redirectUri) {
      const provider = new Provider(issuer, {
        clients: [
          {
            client_id: CLIENT.id,
            client_secret: CLIENT.secret,
            redirect_uris: [redirectUri],
            grant_types: ['authorization_code'],
          },
        ],
        conformIdTokenClaims: false,
        claims: { openid: ['sub'], profile: ['name', 'locale'], email: ['email'] },
        findAccount: (_ctx, sub) => ({
          accountId: sub,
          claims: () => ({
            sub,
            name: `Name of ${sub}`,
            locale: sub.endsWith('-en') ? 'en-GB' : 'ru-RU',
            email: `${sub}@uni.example`,
          }),
        }),
        cookies: { keys: ['a key of the test'] },
      });
      answer = provider.callback();
    },
    refuseTokens(on) {
      refusesTokens = on;
    },
    shut() {
      answer = null;
    },
    async close() {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

/** Cookies by name, as a browser keeps them for one host, whatever the port. */
export class CookieJar {
  readonly #cookies = new Map<string, string>();

  take(headers: Headers): void {
    for (const line of headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';');
      const at = pair.indexOf('=');
      const name = pair.slice(0, at).trim();
      const gone = attributes.some(a => /^\s*(max-age=0|expires=thu, 01 jan 1970)/i.test(a));
      if (gone) this.#cookies.delete(name);
      else this.#cookies.set(name, pair.slice(at + 1));
    }
  }

  set(name: string, value: string): void {
    this.#cookies.set(name, value);
  }

  get names(): string[] {
    return [...this.#cookies.keys()];
  }

  get(name: string): string | undefined {
    return this.#cookies.get(name);
  }

  get header(): Record<string, string> {
    return { cookie: [...this.#cookies].map(([n, v]) => `${n}=${v}`).join('; ') };
  }
}

export type Step = { url: string; status: number; location: string | null; text: string };

/** One request of a browser that does not follow redirects by itself. */
export async function visit(url: string, jar: CookieJar, form?: Record<string, string>): Promise<Step> {
  const response = await fetch(url, {
    redirect: 'manual',
    method: form === undefined ? 'GET' : 'POST',
    headers: { accept: 'text/html', ...jar.header },
    ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
  });
  jar.take(response.headers);
  const location = response.headers.get('location');
  return {
    url,
    status: response.status,
    location: location === null ? null : new URL(location, url).href,
    text: await response.text(),
  };
}

/**
 * Goes through the provider's pages as a browser would, until it is sent back to `callback`.
 *
 * @returns the address of the callback with its query, not yet visited
 */
export async function logInAt(start: string, account: string, jar: CookieJar, callback: string): Promise<string> {
  let step = await visit(start, jar);
  for (let k = 0; k < 20; k++) {
    if (step.location?.startsWith(callback)) return step.location;
    if (step.location !== null) {
      step = await visit(step.location, jar);
      continue;
    }
    const action = /<form[^>]+action="([^"]+)"/.exec(step.text)?.[1];
    const prompt = /name="prompt" value="(\w+)"/.exec(step.text)?.[1];
    if (action === undefined || prompt === undefined)
      throw new Error(`${step.status} at ${step.url}: ${step.text.slice(0, 500)}`);
    step = await visit(new URL(action, step.url).href, jar, { prompt, login: account, password: 'any' });
  }
  throw new Error('the provider never sent us back');
}
