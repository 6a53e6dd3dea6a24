import createClient from 'openapi-fetch';
import type { components, paths } from '../../../sdk/client/api.d.ts';
import { ApiProblem, problemOf } from './problem.ts';
import { ask, type Question } from './questions.ts';

export type Schemas = components['schemas'];

/** Credentials of this page. In memory alone: what browsers store is shared with the pages of plugins. */
const credentials = {
  proof: document.querySelector<HTMLMetaElement>('meta[name=page-proof]')?.content ?? '',
  setupToken: '',
  /** Whether a session is expected to be there: only then its end is a surprise, and the login comes over the page. */
  isLoggedIn: false,
};

/**
 * The token of a setup link stands behind `#`, which browsers do not send; it is taken out of the address at once. The link leads to
 * the setup: before there is an administrator, the overview has nothing to tell.
 */
export function takeSetupToken(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token === null) return;
  credentials.setupToken = token;
  history.replaceState(null, '', setupInsteadOf(location.pathname) + location.search);
}

/** The address of the setup in place of the overview's; others stay. */
export const setupInsteadOf = (path: string): string => (path === '/admin/' ? '/admin/setup' : path);

export const hasSetupToken = (): boolean => credentials.setupToken !== '';

export function keepSetupToken(token: string): void {
  credentials.setupToken = token;
}

/**
 * Whether the service takes the token of the setup. A wrong one is forgotten.
 *
 * @throws ApiProblem when the service cannot say
 */
export async function takesSetupToken(): Promise<boolean> {
  try {
    answered(await api.GET('/api/admin/plugins', { params: { query: { limit: 1 } } }));
  } catch (problem) {
    if (!(problem instanceof ApiProblem) || problem.status !== 401) throw problem;
    credentials.setupToken = '';
    return false;
  }
  return true;
}

/** Notes whether there is a session. */
export function noteSession(isLoggedIn: boolean): void {
  credentials.isLoggedIn = isLoggedIn;
}

const AUTH = '/api/admin/auth/';
/** What begins and ends sessions: a refusal there is not the end of one. */
const LOGINS = new Set(
  [
    ...['login', 'login/second-factor', 'login/passwordless/begin', 'login/passwordless'],
    ...['setup', 'check', 'logout'],
  ].map(name => `${AUTH}${name}`),
);

/** The same request with the credentials as they are now. */
function withCredentials(request: Request): Request {
  const sent = request.clone();
  if (credentials.setupToken !== '') sent.headers.set('Authorization', `Bearer ${credentials.setupToken}`);
  if (credentials.proof !== '') sent.headers.set('X-Page-Proof', credentials.proof);
  return sent;
}

/** Keeps the proof that a login brings. */
async function takeProof(response: Response): Promise<void> {
  if (!new URL(response.url).pathname.startsWith(AUTH) || response.status === 204) return;
  const answer: unknown = await response.clone().json();
  if (typeof answer !== 'object' || answer === null || !('page_proof' in answer)) return;
  if (typeof answer.page_proof !== 'string') return;
  credentials.proof = answer.page_proof;
  // The session goes on where the setup token ends.
  credentials.setupToken = '';
}

/** When one last clicked, typed, and declined to log in. */
const acts = { click: 0, key: 0, declined: -1 };
/** Without a key for so long one is not typing, and a question takes no letters. */
const TYPED_MS = 1500;
const noteClick = (): void => {
  acts.click = performance.now();
};
const noteKey = (): void => {
  acts.key = performance.now();
};
addEventListener('click', noteClick, true);
addEventListener('keydown', noteKey, true);

/** Reads come by themselves as well: what was declined is not asked again before one does something. */
const isDeclinedRead = ({ method }: Request): boolean => method === 'GET' && acts.declined > acts.click;

async function untilTyped(): Promise<void> {
  const isTyping = (): boolean =>
    document.activeElement?.matches('input, textarea, [contenteditable="true"]') === true &&
    performance.now() - acts.key < TYPED_MS;
  while (isTyping()) await new Promise(resolve => setTimeout(resolve, TYPED_MS / 5));
}

/** Keys of requests that got no answer, by the request: the same one sent again is done once (docs/api.md). */
const unanswered = new Map<string, string>();
/** What is larger is no form. */
const KEYED_CHARS_MAX = 100_000;

/** Gives a request its key. @returns the key, and the name the request is known by; null for one without a key */
async function keyed(request: Request): Promise<{ name: string | null; key: string }> {
  const none = { name: null, key: '' };
  if (request.method !== 'POST' || request.headers.get('Content-Type')?.startsWith('multipart/')) return none;
  const name = `${request.url} ${await request.clone().text()}`;
  if (name.length > KEYED_CHARS_MAX) return none;
  const key =
    unanswered.get(name) ??
    [...crypto.getRandomValues(new Uint8Array(16))].map(b => b.toString(16).padStart(2, '0')).join('');
  request.headers.set('Idempotency-Key', key);
  return { name, key };
}

/** Questions that several requests wait for together. */
const pending = new Map<'login' | 'password', Promise<string | null>>();

/** Asks what is the same for all requests once. */
function askOnce(question: Extract<Question, { kind: 'login' | 'password' }>): Promise<string | null> {
  const { kind } = question;
  const put = async (): Promise<string | null> => {
    const answer = await ask(question).finally(() => pending.delete(kind));
    if (kind === 'login') acts.declined = answer === null ? performance.now() : -1;
    return answer;
  };
  const asked = pending.get(kind) ?? put();
  pending.set(kind, asked);
  return asked;
}

/**
 * Asks what has to be asked before the request can be sent again.
 *
 * @param proof the request was sent with: when another one is there now, one has logged in meanwhile
 * @returns the request to send
 * @throws ApiProblem the refusal, when it stands
 */
async function resolved(problem: ApiProblem, request: Request, proof: string): Promise<Request> {
  const asked = async (question: Question): Promise<void> => {
    const isShared = question.kind === 'login' || question.kind === 'password';
    if ((await (isShared ? askOnce(question) : ask(question))) !== null) return;
    problem.isDeclined = true;
    throw problem;
  };
  const isLogin = LOGINS.has(new URL(request.url).pathname);
  const needsLogin = problem.code === 'unauthorized' || problem.code === 'page_proof_required';
  if (needsLogin && !isLogin && credentials.isLoggedIn) {
    // What is typed may decline the login, so this is asked after the last key.
    if (request.method === 'GET') await untilTyped();
    problem.isDeclined = isDeclinedRead(request);
    if (problem.isDeclined) throw problem;
  }
  if (needsLogin && !isLogin && credentials.isLoggedIn)
    return proof === credentials.proof ? await asked({ kind: 'login' }).then(() => request) : request;
  if (problem.code === 'password_confirmation_required' && problem.confirmPath !== null) {
    // It is answered by going to another page.
    await asked({ kind: 'provider', path: problem.confirmPath });
    throw problem;
  }
  if (problem.code === 'password_confirmation_required')
    return await asked({ kind: 'password', error: '' }).then(() => request);
  if (problem.code === 'confirmation_required' && problem.becomesPublic.length + problem.widens.length > 0) {
    const { becomesPublic: places, widens } = problem;
    await asked({ kind: 'wider', places, widens });
    const body = Object(parsed(await request.clone().text()));
    const again = new Request(request, { body: JSON.stringify({ ...body, ...acceptedOf(places, widens) }) });
    again.headers.set('Content-Type', 'application/json');
    return again;
  }
  throw problem;
}

/** Members that confirm; a change of settings knows the first alone. */
const acceptedOf = (places: readonly unknown[], widens: readonly unknown[]): Record<string, true> => ({
  ...(places.length > 0 ? { accept_public: true } : {}),
  ...(widens.length > 0 ? { accept_widening: true } : {}),
});

/** Called when the service refuses by what the administrator may do, which was another thing when the page was read. */
const roleListeners = new Set<() => void>();

/** @returns what ends it */
export function onOtherRoles(listener: () => void): () => void {
  roleListeners.add(listener);
  return () => roleListeners.delete(listener);
}

/** Called when a request on a page without a dialog for it finds that the session has ended. */
const endListeners = new Set<() => void>();

/** @returns what ends it */
export function onSessionEnd(listener: () => void): () => void {
  endListeners.add(listener);
  return () => endListeners.delete(listener);
}

const isOk = (response: Response): boolean => response.ok;

/**
 * Sends a request; what it still needs is asked over the page, and then it is sent again.
 *
 * @param isAnswer tells an answer from a refusal
 */
async function send(request: Request, isAnswer = isOk): Promise<Response> {
  const { proof } = credentials;
  const { key, name } = await keyed(request);
  const response = await fetch(withCredentials(request)).catch(() => {
    if (name !== null) unanswered.set(name, key);
    throw new ApiProblem(0, null);
  });
  if (name !== null) unanswered.delete(name);
  if (isAnswer(response)) {
    await takeProof(response);
    return response;
  }
  const problem = await problemOf(response);
  if (problem.isAboutRoles) for (const listener of roleListeners) listener();
  if (problem.code === 'unauthorized' && !credentials.isLoggedIn) for (const listener of endListeners) listener();
  return await send(await resolved(problem, request, proof), isAnswer);
}

export const api = createClient<paths>({ baseUrl: location.origin, fetch: request => send(request) });

/**
 * Sends records of a file, whose fields the service checks one by one. What it says of them is its answer, also when it takes none (422).
 *
 * @param path last segment of the batch import
 */
export async function sendRecords(
  path: string,
  records: readonly unknown[],
  isDryRun: boolean,
): Promise<{ result: Schemas['BatchResult']; importId: number | null }> {
  const url = new URL(`/api/admin/university/${path}${isDryRun ? '?dry_run=1' : ''}`, location.origin);
  const headers = { 'Content-Type': 'application/json' };
  const request = new Request(url, { method: 'POST', headers, body: JSON.stringify(records) });
  const response = await send(request, r => !/problem/.test(r.headers.get('content-type') ?? '') && r.status < 500);
  // The contract of all fourteen paths.
  const result: Schemas['BatchResult'] = await response.json();
  const id = response.headers.get('x-import-id');
  return { result, importId: id === null ? null : Number(id) };
}

/**
 * Opens an answer that goes on until `signal` ends it. `EventSource` could not send the credentials of this page.
 *
 * @throws ApiProblem when it is refused
 */
export const openStream = (path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> =>
  send(new Request(new URL(path, location.origin), { headers, signal }));

/** The answer of a call; refusals are thrown before. */
export function answered<T>({ data }: { data?: T }): NonNullable<T> {
  if (data === undefined || data === null) throw new ApiProblem(0, null);
  return data;
}

/** Value of `If-Match` that an answer named. */
export const tagOf = ({ response }: { response: Response }): string => response.headers.get('etag') ?? '';

/**
 * Uploads a form with news of how much has gone out, which `fetch` does not give.
 *
 * @param onProgress called with a share from 0 to 1
 */
export function uploadForm<T>(
  method: 'POST' | 'PUT',
  path: string,
  form: FormData,
  onProgress: (share: number) => void,
  read: (answer: unknown) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const { proof } = credentials;
    request.open(method, path);
    if (credentials.setupToken !== '') request.setRequestHeader('Authorization', `Bearer ${credentials.setupToken}`);
    if (proof !== '') request.setRequestHeader('X-Page-Proof', proof);
    request.upload.onprogress = e => onProgress(e.total === 0 ? 0 : e.loaded / e.total);
    request.onerror = () => reject(new ApiProblem(0, null));
    request.onload = () => {
      const answer: unknown = parsed(request.responseText);
      if (request.status < 300) return resolve(read(answer));
      const problem = new ApiProblem(request.status, answer, Number(request.getResponseHeader('retry-after') ?? 0));
      resolved(problem, new Request(new URL(path, location.origin)), proof)
        .then(() => uploadForm(method, path, form, onProgress, read))
        .then(resolve, reject);
    };
    request.send(form);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
