import i18next from 'i18next';
import type { components, Problem } from '../../../sdk/client/api.d.ts';
import { currentLanguage } from '../texts/index.ts';

/** A place of the input that is wrong: JSON pointer into the body, `query:name` or `path:name`. */
export type Place = { pointer: string; message: string };

type PlaceCode = Problem['errors'][number]['code'];

/** What the inspection of a module found. A newer service may know more rules. */
export type Finding = components['schemas']['Finding'];

/** What would be open to every caller (`confirmation_required`). */
export type PublicPlace = { methods: string[]; url: string };
/** What an upgrade widens beyond that, in the words of the service. */
export type Widening = { kind: string; name: string; message: string };

export type SecondFactorAsked = {
  continuation: string;
  methods: string[];
  passkeyOptions: components['schemas']['PasskeyUseOptions'] | null;
};

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** What was not done because it was not confirmed; its words say what that is. */
export class NotConfirmed extends Error {}

/** A refusal of the service (docs/api.md "Errors"), or `unreachable` when no answer came. */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';
  readonly status: number;
  readonly code: Problem['code'] | 'unreachable' | 'unknown';
  readonly places: readonly Place[];
  readonly requestId: string;
  /** Seconds after which another try may succeed; 0 where the service did not say. */
  readonly retryAfter: number;
  /** What was found in a module that is refused. */
  readonly findings: readonly Finding[];
  readonly becomesPublic: readonly PublicPlace[];
  readonly widens: readonly Widening[];
  /** Of a service that is not ready what is missing: the name of a check, or its state. */
  readonly missing: string;
  /** Of a service that is not ready each thing it needs; only administrators get it. */
  readonly checks: components['schemas']['HealthCheck'][];
  /** Members that another administrator changed meanwhile. */
  readonly changed: readonly string[];
  /** Whether it says that the roles, or a missing second factor, do not allow it. */
  readonly isAboutRoles: boolean;
  /** How many more answers the second half of a login takes; 0 when the password is asked for again. */
  readonly attemptsLeft: number;
  /** What the second half of a login needs (`second_factor_required`). */
  readonly secondFactor: SecondFactorAsked | null;
  /** Path at the identity provider that counts as a password given again; null where the password itself is asked for. */
  readonly confirmPath: string | null;
  /** Whether it asked for something that the administrator then did not give: a login, a password, a consent. */
  isDeclined = false;

  constructor(status: number, answer: unknown, retryAfter = 0) {
    const problem = isObject(answer) ? answer : {};
    super(textOf(problem.detail));
    this.status = status;
    this.code = status === 0 ? 'unreachable' : codeOf(problem.code);
    this.requestId = textOf(problem.request_id);
    this.retryAfter = retryAfter;
    this.places = listOf(problem.errors)
      .filter(isObject)
      .map(e => ({ pointer: textOf(e.pointer), message: wordsOf(e) }));
    this.findings = listOf(problem.findings).filter(isObject).map(findingOf);
    this.becomesPublic = listOf(problem.becomes_public)
      .filter(isObject)
      .map(p => ({ methods: listOf(p.methods).map(textOf), url: textOf(p.url) }));
    this.widens = listOf(problem.widens)
      .filter(isObject)
      .map(w => ({ kind: textOf(w.kind), name: textOf(w.name), message: textOf(w.message) }));
    this.missing = textOf(problem.check) || textOf(problem.status);
    this.checks = listOf(problem.checks).filter(isObject).map(checkOf);
    this.changed = listOf(problem.changed).map(textOf);
    this.isAboutRoles = Array.isArray(problem.sufficient_roles) || this.code === 'second_factor_setup_required';
    this.attemptsLeft = typeof problem.attempts_left === 'number' ? problem.attempts_left : 0;
    this.secondFactor =
      this.code === 'second_factor_required'
        ? {
            continuation: textOf(problem.continuation),
            methods: listOf(problem.methods).map(textOf),
            // The browser checks what the service has written for it.
            passkeyOptions: (problem.passkey_options ?? null) as components['schemas']['PasskeyUseOptions'] | null,
          }
        : null;
    const { confirm } = problem;
    this.confirmPath = isObject(confirm) && confirm.method === 'GET' ? textOf(confirm.path) : null;
  }

  /** Messages by the names of fields at the top of the body, for forms. */
  get fields(): Record<string, string> {
    return Object.fromEntries(
      this.places.map(p => [p.pointer.split('/')[1] ?? '', p.message]).filter(([f]) => f !== ''),
    );
  }
}

const checkOf = (c: Record<string, unknown>): components['schemas']['HealthCheck'] => ({
  name: textOf(c.name),
  state: c.state === 'ok' || c.state === 'degraded' ? c.state : 'failed',
  detail: typeof c.detail === 'string' ? c.detail : null,
});

const findingOf = (f: Record<string, unknown>): Finding => ({
  level: f.level === 'warning' || f.level === 'note' ? f.level : 'refusal',
  rule: textOf(f.rule),
  message: textOf(f.message),
  ...(textOf(f.where) === '' ? {} : { where: textOf(f.where) }),
});

/** What is wrong at a place, in the language of the page where its code says enough. */
function wordsOf(place: Record<string, unknown>): string {
  const hint = textOf(place.message);
  // The service words it in English, and more closely than its code does. A newer service may know more codes.
  const code = textOf(place.code) as PlaceCode;
  if (currentLanguage() === 'en' || !i18next.exists(`mistake.${code}`)) return hint;
  return i18next.t(`mistake.${code}`, { hint, limit: typeof place.limit === 'number' ? place.limit : hint });
}

const codeOf = (code: unknown): ApiProblem['code'] =>
  // The list is closed on the side of the service; a newer one may know more.
  typeof code === 'string' ? (code as Problem['code']) : 'unknown';

/** The refusal in an answer. */
export async function problemOf(response: Response): Promise<ApiProblem> {
  const retryAfter = Number(response.headers.get('retry-after') ?? 0) || 0;
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  return new ApiProblem(response.status, isJson ? await response.json().catch(() => null) : null, retryAfter);
}
