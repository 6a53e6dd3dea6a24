import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { newProject } from '../src/authors/new-project.ts';
import { buildProject, endBuilds } from '../src/projects/build-project.ts';
import { LANGUAGES, type Language, readProject } from '../src/projects/project.ts';
import { OneLane, rewrite } from '../test/support/one-lane.ts';
import { buildExample } from '../test/support/sdk.ts';
import { missingToolchain } from '../test/support/toolchains.ts';
import { install, startHost } from './host.ts';
import { closedLoop } from './load.ts';
import { buildLanguagePlugins } from './plugins/build.ts';
import { median } from './report.ts';

/** The same plugin in every kit: size, build, edit to live without the build, time of an execution, requests a second. */

const MAIN = path.resolve(import.meta.dirname, '../src/main.ts');
const EDITS = 20;
/** Between two edits: what follows one, such as the check of the types, ends before the next. */
const REST_MS = 3000;
/** Between two calls that look whether an edit is live: they take processor time from what they wait for. */
const LOOK_MS = 5;
const EXECUTIONS = 3000;
const ROUNDS = 5;
const SECONDS = 2;
const EVENT = JSON.stringify({
  kind: 'http',
  trigger: 'greet',
  request_id: 'x',
  deadline_ms: 5000,
  http: { method: 'GET', path: '/greet', query: { name: 'you' }, headers: { host: 'x' }, params: {}, auth: null },
});
const sleep = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));

async function executionUs(bytes: Uint8Array, directory: string): Promise<number> {
  const lane = new OneLane(await rewrite(bytes, directory), { fixed: false, recycle: true });
  const times: number[] = [];
  for (let k = 0; k < EXECUTIONS; k++) {
    const begun = performance.now();
    lane.run(EVENT);
    lane.release(true);
    times.push((performance.now() - begun) * 1000);
  }
  return median(times.slice(EXECUTIONS / 2));
}

/** From the write of a file to an answer with what was written, over `plugin dev`, without the build it tells of: the median of edits. */
async function editMs(language: Language, directory: string): Promise<number> {
  const folder = path.join(directory, `edited-${language}`);
  newProject(folder, language, 'http');
  const { entry } = readProject(folder);
  const words = ['--disable-warning=ExperimentalWarning', MAIN, 'plugin', 'dev', folder, '--port', '0'];
  const child: ChildProcess = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
  const ended = new Promise(resolve => child.once('close', resolve));
  try {
    const shown = async (what: RegExp): Promise<string> => {
      for (;;) {
        const [, found] = what.exec(out) ?? [];
        if (found !== undefined) return found;
        if (child.exitCode !== null) throw new Error(`plugin dev has ended: ${out}`);
        await sleep(20);
      }
    };
    const url = `${await shown(/listening on (http:\S+);/)}/api/triggers/http/edited-${language}/greet/ada`;
    const headers = { 'X-Dev-Principal': 'user:7' };
    let text = fs.readFileSync(entry, 'utf8');
    const times: number[] = [];
    for (let k = 0; k < EDITS; k++) {
      text = text.replace(/Hello\d*,/, `Hello${k},`);
      out = '';
      const begun = performance.now();
      fs.writeFileSync(entry, text);
      while (!(await (await fetch(url, { headers })).text()).includes(`Hello${k},`)) await sleep(LOOK_MS);
      const ms = performance.now() - begun;
      times.push(ms - Number(await shown(/is live \(built in (\d+) ms/)));
      await sleep(REST_MS);
    }
    return median(times);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

/** A new plugin of a language, built again and again. */
async function buildMs(language: Language, directory: string): Promise<number> {
  const folder = path.join(directory, `built-${language}`);
  newProject(folder, language, 'http');
  const project = readProject(folder);
  const times: number[] = [];
  for (let k = 0; k < 6; k++) times.push((await buildProject(project)).ms);
  return median(times.slice(1));
}

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-kits-'));
fs.chmodSync(directory, 0o711);
const greeters = await buildLanguagePlugins();
const WORDS: Readonly<Record<string, string>> = { typescript: 'ts', go: 'go', rust: 'rust', c: 'c' };
const host = await startHost(path.join(directory, 'host'));
try {
  console.log('kit              size     build   + until live   one execution   requests/s of the sample');
  const sample = await buildExample('hello');
  for (const language of Object.keys(LANGUAGES) as Language[]) {
    const missing = missingToolchain(language);
    if (missing !== null) {
      console.log(`${LANGUAGES[language].padEnd(14)} left out: ${missing}`);
      continue;
    }
    const greeter = greeters.find(g => WORDS[g.language] === language);
    const bytes = greeter?.bytes ?? sample;
    // The sample of the service is the one in AssemblyScript.
    const id = greeter?.id ?? 'hello';
    if (greeter !== undefined) await install(host.port, bytes);
    const ratios: number[] = [];
    await closedLoop(host.port, `/api/triggers/http/${id}/greet`, 64, SECONDS);
    for (let round = 0; round < ROUNDS; round++) {
      const own = await closedLoop(host.port, `/api/triggers/http/${id}/greet`, 64, SECONDS);
      const other = await closedLoop(host.port, '/api/triggers/http/hello/greet', 64, SECONDS);
      ratios.push(own.perSecond / other.perSecond);
    }
    const cells = [
      `${Math.ceil(bytes.length / 1024)} KB`.padStart(8),
      `${Math.round(await buildMs(language, directory))} ms`.padStart(9),
      `${Math.round(await editMs(language, directory))} ms`.padStart(14),
      `${Math.round(await executionUs(bytes, directory))} us`.padStart(15),
      median(ratios).toFixed(3).padStart(15),
    ];
    console.log(`${LANGUAGES[language].padEnd(13)}${cells.join(' ')}`);
  }
} finally {
  await host.stop();
  await endBuilds();
  fs.rmSync(directory, { recursive: true, force: true });
}
