import { OperatorError } from '../base/errors.ts';

/**
 * Tests of a plugin as requests and what is expected, for authors who write no TypeScript (sdk/typescript/README.md "Test files
 * without code"). The form is that of Hurl (https://hurl.dev), as far as a plugin needs it.
 */

/** One request, command or call, and what must come of it. */
export type FixtureCase = {
  /** The comment above it, or what it asks. */
  name: string;
  /** Line of its first word, from 1. */
  line: number;
  kind: 'http' | 'message' | 'call';
  /** `GET /greet?name=Ada`, `/menu tomorrow`, or the name of a function. */
  what: string;
  headers: Record<string, string>;
  body: string;
  /** Values of `[Host]`: `user`, `service_key`, `roles`, `grant`, `kv KEY`, `file NAME`, and `answer METHOD URL`. */
  host: Record<string, string>;
  expected: {
    /** Null for a failure, and where it is not said. */
    status: number | null;
    headers: Record<string, string>;
    /** Null where it is not said. */
    body: string | null;
    /** Replies to a command, in order. */
    replies: string[];
    /** A pattern that the failure must match; null for none. */
    fails: string | null;
  };
};

export type Fixture = { config: Record<string, string>; cases: FixtureCase[] };

const BEGINS = /^(?:(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (\/\S*)|MESSAGE (\/.+)|CALL (\S+))$/;
const EXPECTS = /^(?:HTTP (\d{3})|FAILS (.+)|REPLY (.*)|RETURNS)$/;
/** A header (RFC 9110 section 5.6.2), or a name and a value. */
const FIELD = /^([\w!#$%&'*+.^`|~-]+):\s*(.*)$/;
/** What has a name and a value of any characters. */
const NAMED = /^((?:kv|file|answer) .+?) = (.*)$/;
const NAMES = /^(?:kv|file) .|^answer [A-Z]+ https?:\/\//;
/** What else `[Host]` may say, and what it looks like. */
const HOST: Readonly<Record<string, RegExp>> = { user: /^\d+$/, service_key: /^\d+$/, grant: /^/, roles: /^/ };

/** A line that looks like the head of a section, and is no JSON. */
const SECTION = /^\[(?!(?:true|false|null)\])[A-Za-z]+\]\s*$/;

/** Reads lines one by one. */
class Lines {
  readonly #lines: readonly string[];
  readonly #file: string;
  at = 0;

  constructor(text: string, file: string) {
    // Some editors begin a file with a mark of its encoding.
    this.#lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
    this.#file = file;
  }

  get line(): string | undefined {
    return this.#lines[this.at];
  }

  fail(what: string): never {
    throw new OperatorError(`${this.#file}:${this.at + 1}: ${what}`);
  }

  /** Takes lines until one that ends them. */
  until(ends: (line: string) => boolean): string[] {
    const taken: string[] = [];
    for (let { line } = this; line !== undefined && !ends(line); line = this.line) {
      taken.push(line);
      this.at++;
    }
    return taken;
  }

  fields(): Record<string, string> {
    const fields: Record<string, string> = {};
    for (let { line } = this; line !== undefined && line.trim() !== ''; line = this.line) {
      const [, name, value] = NAMED.exec(line) ?? FIELD.exec(line) ?? [];
      if (name === undefined) break;
      fields[name] = value ?? '';
      this.at++;
    }
    return fields;
  }
}

const isBoundary = (line: string): boolean =>
  BEGINS.test(line) || EXPECTS.test(line) || line.startsWith('#') || /^\[(Host|Config)\]/.test(line);

/** The text up to the next part, without blank lines around it; null for none. */
function textOf(lines: Lines): string | null {
  const text = lines.until(isBoundary).join('\n').trim();
  return text === '' ? null : text;
}

function expectation(lines: Lines, one: FixtureCase): void {
  const [, status, fails, reply] = EXPECTS.exec(lines.line ?? '') ?? [];
  const isReply = lines.line?.startsWith('REPLY ') === true;
  lines.at++;
  const { expected } = one;
  if (isReply) {
    expected.replies.push([reply ?? '', textOf(lines) ?? ''].join('\n').trim());
    return;
  }
  if (fails !== undefined) {
    expected.fails = fails;
    return;
  }
  if (status !== undefined) {
    expected.status = Number(status);
    expected.headers = lines.fields();
  }
  expected.body = textOf(lines);
}

function oneCase(lines: Lines, comment: string): FixtureCase {
  const [all = '', method, path, message, call] = BEGINS.exec(lines.line ?? '') ?? [];
  if (all === '') lines.fail(`"${lines.line}" begins no test: write GET /path, MESSAGE /command, or CALL function`);
  const one: FixtureCase = {
    name: comment === '' ? all : comment,
    line: lines.at + 1,
    kind: method !== undefined ? 'http' : message !== undefined ? 'message' : 'call',
    what: method !== undefined ? `${method} ${path}` : (message ?? call ?? ''),
    headers: {},
    body: '',
    host: {},
    expected: { status: null, headers: {}, body: null, replies: [], fails: null },
  };
  lines.at++;
  one.headers = lines.fields();
  if (lines.line?.startsWith('[Host]') === true) {
    lines.at++;
    one.host = lines.fields();
    for (const [name, value] of Object.entries(one.host))
      if (!NAMES.test(name) && HOST[name]?.test(value) !== true)
        lines.fail(
          `"${name}: ${value}" is nothing [Host] knows: user: 7, service_key: 1, roles: teacher, grant: kv, kv KEY = VALUE, file NAME = TEXT, or answer GET URL = 200 BODY`,
        );
  }
  if (SECTION.test(lines.line ?? ''))
    lines.fail(`${lines.line?.trim()} is no section of a test: [Host] is; [Config] stands before the first test`);
  one.body = textOf(lines) ?? '';
  if (!EXPECTS.test(lines.line ?? ''))
    lines.fail(`what must come of "${all}" is missing: write HTTP 200, REPLY text, RETURNS, or FAILS pattern`);
  while (EXPECTS.test(lines.line ?? '')) {
    expectation(lines, one);
    lines.until(line => line.trim() !== '');
  }
  return one;
}

/**
 * @param file its name, for errors
 * @throws OperatorError with the line that is wrong
 */
export function readFixture(text: string, file: string): Fixture {
  const lines = new Lines(text, file);
  const fixture: Fixture = { config: {}, cases: [] };
  let comment = '';
  for (let { line } = lines; line !== undefined; line = lines.line) {
    if (line.trim() === '') {
      lines.at++;
    } else if (line.startsWith('#')) {
      comment = line.replace(/^#+\s*/, '');
      lines.at++;
    } else if (line.startsWith('[Config]')) {
      lines.at++;
      fixture.config = lines.fields();
    } else {
      fixture.cases.push(oneCase(lines, comment));
      comment = '';
    }
  }
  if (fixture.cases.length === 0) throw new OperatorError(`${file} has no test: write a request like GET /path`);
  return fixture;
}
