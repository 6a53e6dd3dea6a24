import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { OperatorError } from '../base/errors.ts';
import { type Fixture, type FixtureCase, readFixture } from './fixture.ts';
import type { OutgoingAnswer, OutgoingRequest } from './memory-host.ts';
import { type CallOptions, type TestHost, testHost } from './test-host.ts';

/** Runs test files without code (sdk/typescript/README.md "Test files without code"). */

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON is compared by its value, all else by its text; a test file cannot hold a line break of CSV (CR LF). */
function assertBody(actual: string, expected: string | null): void {
  if (expected === null) return;
  const value = jsonOf(expected);
  if (value === undefined) assert.equal(actual.trim().replaceAll('\r\n', '\n'), expected);
  else {
    const given = jsonOf(actual);
    assert.deepEqual(given === undefined ? actual : given, value);
  }
}

/** Words of a line, between blanks or commas. */
const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter(word => word !== '');

/** Values of `[Host]` that have a name, like `kv KEY`. */
const namedOf = ({ host }: FixtureCase, word: 'kv' | 'file' | 'answer'): Array<[name: string, value: string]> =>
  Object.entries(host).flatMap(([name, value]) =>
    name.startsWith(`${word} `) ? [[name.slice(word.length + 1), value]] : [],
  );

function optionsOf(one: FixtureCase): CallOptions {
  const { host } = one;
  const kv = namedOf(one, 'kv');
  const { grant, roles, service_key, user } = host;
  return {
    kv: Object.fromEntries(kv),
    ...(user === undefined ? {} : { user: Number(user) }),
    ...(service_key === undefined ? {} : { serviceKey: Number(service_key) }),
    ...(grant === undefined ? {} : { grant: wordsOf(grant) }),
    ...(roles === undefined ? {} : { access: { roles: wordsOf(roles) } }),
  };
}

function assertEnd(failure: string, { fails }: FixtureCase['expected']): void {
  if (fails === null) assert.equal(failure, '');
  else assert.match(failure, new RegExp(fails));
}

/** What other hosts answer, by method and address. */
type Answers = Map<string, OutgoingAnswer>;

/** @throws Error for a request that the test answers with nothing */
function answerOf(answers: Answers, { method, url }: OutgoingRequest): OutgoingAnswer {
  const answer = answers.get(`${method} ${url}`);
  if (answer !== undefined) return answer;
  throw new Error(`the test answers no such request: write answer ${method} ${url} = 200 BODY under [Host]`);
}

/** Adds the files of a case. @returns their ids by name; what a user uploads is theirs, what comes with a message is not */
function addFiles(host: TestHost, one: FixtureCase, user: CallOptions['user']): Map<string, string> {
  const owner = one.kind === 'http' && user !== undefined ? { user } : {};
  return new Map(namedOf(one, 'file').map(([name, text]) => [name, host.addFile(name, text, owner)]));
}

async function runCase(host: TestHost, one: FixtureCase, answers: Answers): Promise<void> {
  const { expected, kind } = one;
  const options = optionsOf(one);
  const files = addFiles(host, one, options.user);
  const withIds = (text: string): string => text.replace(/\{\{(.+?)\}\}/g, (all, name) => files.get(name) ?? all);
  const what = withIds(one.what);
  for (const [request, answer] of namedOf(one, 'answer')) {
    const [, status = '200', body = ''] = /^(\d{3}) ?(.*)$/.exec(answer) ?? [];
    answers.set(request, { status: Number(status), body });
  }
  if (kind === 'http') {
    const { headers } = one;
    const body = withIds(one.body);
    const answer = await host.http(what, { ...options, headers, ...(body === '' ? {} : { body }) });
    assertEnd(answer.failure, expected);
    if (expected.status !== null) {
      const why = answer.failure || answer.text;
      const differs = `HTTP ${expected.status} is expected, and the answer is ${answer.status}${why === '' ? '' : `: ${why}`}`;
      assert.equal(answer.status, expected.status, differs);
    }
    for (const [name, value] of Object.entries(expected.headers))
      assert.equal(answer.headers[name.toLowerCase()], value);
    assertBody(answer.text, expected.body);
    return;
  }
  if (kind === 'message') {
    const { failure, replies } = await host.message(what, { ...options, files: [...files.values()] });
    assertEnd(failure, expected);
    const texts = replies.map(reply =>
      typeof reply === 'object' && reply !== null && 'text' in reply ? String(reply.text) : '',
    );
    if (expected.fails === null) assert.deepEqual(texts, expected.replies);
    return;
  }
  const { bytes, failure } = await host.call(what, Buffer.from(withIds(one.body)), options);
  assertEnd(failure, expected);
  assertBody(bytes.toString(), expected.body);
}

/** A mistake in the file is one line, without the way through our code. */
function fixtureOf(file: string, name: string): Fixture | null {
  try {
    return readFixture(fs.readFileSync(file, 'utf8'), name);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
    return null;
  }
}

/**
 * Registers the tests of a file with Node's own test runner.
 *
 * @param file path of a file with tests without code
 */
export function runFixture(file: string): void {
  const name = path.relative('.', file);
  const fixture = fixtureOf(file, name);
  if (fixture === null) return;
  const { cases, config } = fixture;
  test(name, async t => {
    // Data stay from one test of the file to the next.
    const answers: Answers = new Map();
    const host = await testHost({ config, http: request => answerOf(answers, request) });
    t.after(() => host.close());
    for (const one of cases) await t.test(`${one.name} (line ${one.line})`, () => runCase(host, one, answers));
  });
}
