import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { closedLoop, type LoadRequest, type Measured, openLoop, sendOnce } from '../../authors/load.ts';
import { OperatorError, UsageError } from '../../base/errors.ts';
import { fileProblem, isMissing } from '../../base/file-problem.ts';
import { inspectModule } from '../../plugins/inspect.ts';
import { httpTriggersOf, type Manifest } from '../../plugins/manifest.ts';
import { buildProject, endBuilds, SourceMistakes } from '../../projects/build-project.ts';
import { readProject } from '../../projects/project.ts';
import type { Program } from '../../supervisor/handover/program.ts';
import { jsonText } from '../print/json-text.ts';
import { table } from '../print/table.ts';
import { headersOf } from '../remote/call-commands.ts';
import { configOf } from '../remote/plugin-commands.ts';
import { ask } from '../remote/remote.ts';
import { type BenchService, type CpuParts, cpuOf, installOpenly, startBenchService } from './bench-service.ts';

/** `plugin-host bench`: what a plugin costs, and how many calls of it a second are answered. */

export type BenchFlags = {
  path?: string;
  method?: string;
  data?: string;
  header: string[];
  rate?: string;
  connections?: string;
  seconds?: string;
  compare?: string;
  configFile?: string;
  json?: boolean;
};

const measured = z.object({
  per_second: z.number(),
  p50_ms: z.number().nullable(),
  p95_ms: z.number().nullable(),
  p99_ms: z.number().nullable(),
  failed: z.number(),
  statuses: z.record(z.string(), z.number()),
  generator: z.number(),
});

/** What is printed as JSON and kept for the next run. */
const result = z.object({
  made_at: z.string(),
  target: z.string(),
  request: z.string(),
  /** The first call after the installation; only for a module. */
  first_ms: z.number().nullable(),
  /** Not of an address with a rate, which gets no more than that. */
  one_connection: measured.nullable(),
  saturated: measured.extend({ connections: z.number() }).nullable(),
  at_rate: measured.extend({ rate: z.number() }),
  /** Medians of recorded executions; only for a module. */
  execution: z.object({ run_ms: z.number(), host_calls: z.number(), peak_pages: z.number() }).nullable(),
  /** Processor time of one request at saturation, in microseconds; only for a module. */
  cpu_us: z.object({ main: z.number(), lanes: z.number(), database: z.number() }).nullable(),
});
type Result = z.infer<typeof result>;

const WARM_ROUNDS_MAX = 12;
/** A generator that uses more of a processor is itself the limit. */
const GENERATOR_LIMIT = 0.95;
const RECORDS = 100;

function numberOf(name: string, text: string | undefined, otherwise: number): number {
  const number = text === undefined ? otherwise : Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new UsageError(`--${name} is ${JSON.stringify(text)}; it must be a number above zero`);
}

/** A module to measure, with what it declares. */
type Measurable = {
  module: Uint8Array<ArrayBuffer>;
  manifest: Manifest;
  config: Record<string, unknown>;
  /** Where its results are kept. */
  kept: string;
};

/** The module of a file, or of the folder of a plugin, which is built. @throws OperatorError for one an upload would refuse */
async function moduleOf(target: string, flags: BenchFlags): Promise<Measurable> {
  const given = configOf(flags.configFile);
  if (fs.statSync(target, { throwIfNoEntry: false })?.isDirectory() === true) {
    const project = readProject(target);
    const { manifest, module } = await buildProject(project).finally(endBuilds);
    const kept = path.join(target, 'build', `${manifest.id}.wasm.bench.json`);
    return { module: new Uint8Array(module), manifest, config: given ?? project.devConfig, kept };
  }
  let module: Uint8Array<ArrayBuffer>;
  try {
    module = new Uint8Array(fs.readFileSync(target));
  } catch (error) {
    throw new OperatorError(`${target} cannot be read: ${fileProblem(error)}`);
  }
  const { findings, manifest } = inspectModule(module);
  const refusal = findings.find(f => f.level === 'refusal');
  if (manifest === null || refusal !== undefined)
    throw new SourceMistakes(`an upload would refuse ${target}: ${refusal?.message ?? 'it has no manifest'}`);
  return { module, manifest, config: given ?? {}, kept: `${target}.bench.json` };
}

function requestTo(url: string, method: string, flags: BenchFlags): LoadRequest {
  const body = flags.data === undefined ? null : Buffer.from(flags.data);
  return { url: new URL(url), method, headers: Object.fromEntries(headersOf(flags)), body };
}

/** The trigger that is measured: the one whose path is given, otherwise the first. @throws OperatorError, UsageError */
function chooseTrigger(manifest: Manifest, flags: BenchFlags): { path: string; method: string } {
  const triggers = httpTriggersOf(manifest);
  const [first] = triggers;
  if (first === undefined) throw new OperatorError(`${manifest.id} has no HTTP trigger to call`);
  const wanted = flags.path ?? first.path;
  if (flags.path === undefined && wanted.includes(':'))
    throw new UsageError(`the path ${wanted} has a parameter: give one with --path`);
  const given = (wanted.split('?')[0] ?? '').split('/');
  const fits = (pattern: string): boolean => {
    const parts = pattern.split('/');
    return parts.length === given.length && parts.every((part, k) => part.startsWith(':') || part === given[k]);
  };
  const found = triggers.find(t => fits(t.path)) ?? first;
  const method = flags.method ?? (flags.data === undefined ? found.methods[0] : 'POST') ?? 'GET';
  return { path: `/api/triggers/http/${manifest.id}${wanted}`, method: method.toUpperCase() };
}

/** The first call. @throws OperatorError when it is refused, because then nothing worth measuring runs */
async function firstCall(request: LoadRequest): Promise<number> {
  const { method, url } = request;
  const at = performance.now();
  const status = await sendOnce(request);
  const ms = performance.now() - at;
  if (status === 0) throw new OperatorError(`${url.origin}${url.pathname} does not answer`);
  if (status < 400) return ms;
  throw new OperatorError(
    `${method} ${url.pathname} is answered ${status}; --path, --method, --data and --header say what to send`,
  );
}

/** Calls until the rate does not grow any more: V8 optimises what runs often. */
async function warm(request: LoadRequest, connections: number, seconds: number): Promise<void> {
  let best = 0;
  for (let k = 0, worse = 0; k < WARM_ROUNDS_MAX && worse < 2; k++) {
    const { per_second } = await closedLoop(request, connections, seconds);
    worse = per_second > best * 1.05 ? 0 : worse + 1;
    best = Math.max(best, per_second);
  }
}

type Spent = { saturated: Measured; cpu: CpuParts | null };

async function saturate(request: LoadRequest, connections: number, seconds: number, pid: number): Promise<Spent> {
  const before = cpuOf(pid);
  const saturated = await closedLoop(request, connections, seconds);
  const after = cpuOf(pid);
  const cpu = {
    main_ms: after.main_ms - before.main_ms,
    lanes_ms: after.lanes_ms - before.lanes_ms,
    database_ms: after.database_ms - before.database_ms,
  };
  return { saturated, cpu: after.main_ms === 0 ? null : cpu };
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

async function executionOf({ remote }: BenchService, plugin: string): Promise<Result['execution']> {
  const params = { path: { id: plugin }, query: { limit: RECORDS } };
  const { items } = await ask(() => remote.host.GET('/api/admin/plugins/{id}/executions', { params }));
  const well = items.filter(e => e.outcome === 'ok');
  if (well.length === 0) return null;
  const of = (read: (e: (typeof well)[number]) => number): number => median(well.map(read));
  return { run_ms: of(e => e.run_ms), host_calls: of(e => e.host_calls), peak_pages: of(e => e.peak_pages) };
}

type Size = { seconds: number; connections: number; rate: number | null };

const sizeOf = ({ connections, rate, seconds }: BenchFlags): Size => ({
  seconds: numberOf('seconds', seconds, 5),
  connections: Math.ceil(numberOf('connections', connections, 64)),
  rate: rate === undefined ? null : numberOf('rate', rate, 1),
});

type Loads = Omit<Result, 'made_at' | 'target' | 'execution'>;

/** The loads, one after the other. @param service the one that was started for it; null for another one's address */
async function measure(
  request: LoadRequest,
  { connections, seconds, ...size }: Size,
  service: BenchService | null,
  progress: (text: string) => void,
): Promise<Loads> {
  const first = await firstCall(request);
  const named = `${request.method} ${request.url.pathname}${request.url.search}`;
  if (service === null && size.rate !== null) {
    progress('measuring');
    const atRate = await openLoop(request, size.rate, connections, seconds);
    const none = { first_ms: null, one_connection: null, saturated: null, cpu_us: null };
    return { request: named, ...none, at_rate: { ...atRate, rate: size.rate } };
  }
  progress('warming up');
  await warm(request, connections, Math.min(1, seconds));
  progress('measuring');
  const one = await closedLoop(request, 1, seconds);
  const { cpu, saturated } = await saturate(request, connections, seconds, service?.pid ?? 0);
  const rate = size.rate ?? Math.max(1, Math.round(saturated.per_second / 2));
  const atRate = await openLoop(request, rate, connections, seconds);
  const requests = Object.values(saturated.statuses).reduce((n, s) => n + s, 0);
  const each = (ms: number): number => Math.round((ms * 1000) / Math.max(1, requests));
  return {
    request: named,
    first_ms: service === null ? null : Number(first.toFixed(3)),
    one_connection: one,
    saturated: { ...saturated, connections },
    at_rate: { ...atRate, rate },
    cpu_us:
      service === null || cpu === null
        ? null
        : { main: each(cpu.main_ms), lanes: each(cpu.lanes_ms), database: each(cpu.database_ms) },
  };
}

/**
 * The result that was kept.
 *
 * @returns null when there is none yet
 * @throws OperatorError for a file that is no result: it would be replaced
 */
function readKept(file: string): Result | null {
  let text: string;
  try {
    text = fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (isMissing(error)) return null;
    throw new OperatorError(`${file} cannot be read: ${fileProblem(error)}`);
  }
  try {
    return result.parse(JSON.parse(text));
  } catch {
    throw new OperatorError(
      `${file} is not a result of bench, and would be replaced: name another file with --compare`,
    );
  }
}

/** @returns why it could not be written; null when it was */
function keep(file: string, made: Result): string | null {
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, `${jsonText(made)}\n`);
    return null;
  } catch (error) {
    return `${file} cannot be written, so the next run has nothing to compare with: ${fileProblem(error)}`;
  }
}

const ms = (value: number | null): string => (value === null ? 'never' : `${value.toFixed(2)} ms`);

/** How often the value of before; nothing where one of them is not known. */
function ratio(now: number | null, before: number | null | undefined): string {
  if (now === null || before === null || before === undefined || before === 0) return '-';
  return `${(now / before).toFixed(2)} x`;
}

type Shown = { name: string; load: Measured; before: Measured | undefined };

/** The loads of a result, each with that of the last run where it was the same. */
function loadsOf(made: Result, last: Result | null): Shown[] {
  const { at_rate, one_connection, saturated } = made;
  const before = last?.request === made.request ? last : null;
  const isSame = before?.saturated?.connections === saturated?.connections;
  return [
    ...(one_connection === null
      ? []
      : [{ name: 'one connection', load: one_connection, before: before?.one_connection ?? undefined }]),
    ...(saturated === null
      ? []
      : [
          {
            name: `${saturated.connections} connections`,
            load: saturated,
            before: isSame ? (before?.saturated ?? undefined) : undefined,
          },
        ]),
    {
      name: `at ${at_rate.rate}/s`,
      load: at_rate,
      before: before?.at_rate.rate === at_rate.rate ? before.at_rate : undefined,
    },
  ];
}

/** @param last the last run; null for none */
function shown(made: Result, last: Result | null): string {
  const loads = loadsOf(made, last);
  const columns = last === null ? [] : ['RATE/LAST', 'P99/LAST'];
  const rows = loads.map(({ before, load, name }) => [
    name,
    `${load.per_second}/s`,
    ...[load.p50_ms, load.p95_ms, load.p99_ms].map(ms),
    String(load.failed),
    load.generator.toFixed(2),
    ...(last === null ? [] : [ratio(load.per_second, before?.per_second), ratio(load.p99_ms, before?.p99_ms)]),
  ]);
  const { cpu_us, execution, first_ms } = made;
  const isLimited = loads.some(({ load }) => load.generator > GENERATOR_LIMIT);
  return [
    `${made.target}: ${made.request}`,
    ...(first_ms === null ? [] : [`first call after the installation: ${ms(first_ms)}`]),
    table([['LOAD', 'RATE', 'P50', 'P95', 'P99', 'FAILED', 'GENERATOR', ...columns], ...rows]),
    ...(execution === null
      ? []
      : [
          `one execution: ${ms(execution.run_ms)}, ${execution.host_calls} host calls, ${execution.peak_pages} pages of memory`,
        ]),
    ...(cpu_us === null
      ? []
      : [
          `processor time of a request: main thread ${cpu_us.main} us, lanes and V8 ${cpu_us.lanes} us, PostgreSQL ${cpu_us.database} us`,
        ]),
    ...(isLimited ? ['the generator used a whole processor: the service can do more than this'] : []),
    ...(last === null ? [] : [`compared with the run of ${last.made_at}, where request and load are the same`]),
  ].join('\n');
}

/**
 * `bench MODULE | FOLDER | URL`: a module, or the plugin of a folder, is measured in a service that is started for it and goes afterwards.
 *
 * @param program how this process was started: the service is the same program
 * @returns what to print
 * @throws UsageError, OperatorError
 */
export async function benchCommand(
  target: string,
  flags: BenchFlags,
  {
    environment,
    program,
    progress,
  }: { environment: NodeJS.ProcessEnv; program: Program; progress(text: string): void },
): Promise<string> {
  const finish = (of: Omit<Result, 'made_at'>, kept: string | undefined, last: Result | null): string => {
    const made = { made_at: new Date().toISOString(), ...of };
    const problem = kept === undefined ? null : keep(kept, made);
    if (problem !== null) progress(problem);
    return flags.json === true ? jsonText({ ...made, last }) : shown(made, last);
  };
  const size = sizeOf(flags);
  if (/^https?:\/\//i.test(target)) {
    if (!URL.canParse(target)) throw new UsageError(`${JSON.stringify(target)} is not an address`);
    const method = flags.method ?? (flags.data === undefined ? 'GET' : 'POST');
    const last = flags.compare === undefined ? null : readKept(flags.compare);
    const request = requestTo(new URL(flags.path ?? '', target).href, method.toUpperCase(), flags);
    const found = await measure(request, size, null, progress);
    return finish({ target: request.url.origin, ...found, execution: null }, flags.compare, last);
  }
  const { config, kept, manifest, module } = await moduleOf(target, flags);
  const chosen = chooseTrigger(manifest, flags);
  const file = flags.compare ?? kept;
  const last = readKept(file);
  progress('starting a service');
  const service = await startBenchService(program, environment);
  try {
    await installOpenly(service.remote, module, config);
    const request = requestTo(service.url + chosen.path, chosen.method, flags);
    const found = await measure(request, size, service, progress);
    const execution = await executionOf(service, manifest.id);
    return finish({ target: `${manifest.id} ${manifest.version}`, ...found, execution }, file, last);
  } finally {
    await service.stop();
  }
}
