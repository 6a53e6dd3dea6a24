import { canonicalPath } from '../http/plain-path.ts';
import type { HttpTrigger } from './manifest.ts';

/** The result of matching a request path within one plugin. */
export type RouteMatch<T> =
  | { kind: 'found'; target: T; params: Record<string, string> }
  | { kind: 'method'; allow: string[] }
  | { kind: 'none' };

type Pattern<T> = { segments: string[]; literalChars: number; methods: Map<string, T> };

const NO_PARAMS: Record<string, string> = Object.freeze({});

/**
 * Normalizes a path: `/` equals the empty path, a slash at the end of a longer path is ignored, and letters are encoded alike
 * (RFC 3986 section 6.2.2).
 */
function normal(path: string): string {
  const open = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path === '/' ? '' : path;
  return canonicalPath(open);
}

/**
 * Matches paths against a plugin's HTTP triggers: literal paths first, then patterns, the longest literal match first.
 */
export class TriggerRoutes<T> {
  readonly #literal = new Map<string, Map<string, T>>();
  readonly #patterns: Pattern<T>[] = [];

  constructor(entries: ReadonlyArray<{ trigger: HttpTrigger; target: T }>) {
    const patterns = new Map<string, Pattern<T>>();
    for (const { trigger, target } of entries) {
      const path = normal(trigger.path);
      let methods: Map<string, T>;
      if (path.includes('/:')) {
        const segments = path.split('/');
        const pattern = patterns.get(path) ?? {
          segments,
          literalChars: segments.reduce((n, s) => n + (s.startsWith(':') ? 0 : s.length + 1), 0),
          methods: new Map<string, T>(),
        };
        patterns.set(path, pattern);
        methods = pattern.methods;
      } else {
        methods = this.#literal.get(path) ?? new Map<string, T>();
        this.#literal.set(path, methods);
      }
      for (const method of trigger.methods) methods.set(method, target);
    }
    this.#patterns.push(...[...patterns.values()].sort((a, b) => b.literalChars - a.literalChars));
  }

  /**
   * @param method upper case
   * @param rawPath path after the plugin id, as sent
   * @returns the target with its decoded parameters; `method` if the path exists only with other methods
   */
  match(method: string, rawPath: string): RouteMatch<T> {
    const path = normal(rawPath);
    const literal = this.#literal.get(path);
    const direct = literal === undefined ? undefined : targetOf(literal, method);
    if (direct !== undefined) return { kind: 'found', target: direct, params: NO_PARAMS };
    const allow = new Set(literal?.keys() ?? []);
    if (this.#patterns.length > 0) {
      const segments = path.split('/');
      for (const pattern of this.#patterns) {
        const params = matchSegments(pattern.segments, segments);
        if (params === null) continue;
        const target = targetOf(pattern.methods, method);
        if (target !== undefined) return { kind: 'found', target, params };
        for (const m of pattern.methods.keys()) allow.add(m);
      }
    }
    if (allow.has('GET')) allow.add('HEAD');
    return allow.size > 0 ? { kind: 'method', allow: [...allow].sort() } : { kind: 'none' };
  }

  /** Methods that exist at a path, for a preflight request. */
  methodsAt(rawPath: string): Map<string, T> {
    const path = normal(rawPath);
    const found = new Map(this.#literal.get(path) ?? []);
    const segments = path.split('/');
    for (const pattern of this.#patterns)
      if (matchSegments(pattern.segments, segments) !== null)
        for (const [m, t] of pattern.methods) if (!found.has(m)) found.set(m, t);
    return found;
  }
}

/** HEAD is answered wherever GET is (RFC 9110 section 9.1). */
const targetOf = <T>(methods: ReadonlyMap<string, T>, method: string): T | undefined =>
  methods.get(method) ?? (method === 'HEAD' ? methods.get('GET') : undefined);

function matchSegments(pattern: readonly string[], path: readonly string[]): Record<string, string> | null {
  if (pattern.length !== path.length) return null;
  // No name begins with two underscores (manifest.ts).
  const params: Record<string, string> = {};
  for (let i = 0; i < pattern.length; i++) {
    const p = pattern[i]!;
    const given = path[i]!;
    if (!p.startsWith(':')) {
      if (p !== given) return null;
      continue;
    }
    if (given === '') return null;
    try {
      params[p.slice(1)] = decodeURIComponent(given);
    } catch {
      return null;
    }
  }
  return params;
}
