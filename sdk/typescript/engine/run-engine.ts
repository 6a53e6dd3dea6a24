import { linkPlugin } from './link-plugin.ts';

/** Runs the start of a plugin at the build: what it asks for, and the manifest it declares. */

/** What a start says that defines no plugin. */
export const NO_PLUGIN = 'no plugin is defined';

/** What the top level of the files asked for; `stack` has positions in the bundle. */
export type Asked = { what: 'random' | 'clock'; stack: string };

export type StartRun = {
  /** The manifest as JSON; empty when the start has failed. */
  manifest: string;
  /** Why it failed; null when it ended well. */
  failure: string | null;
  /** Where; with positions in the bundle. */
  stack: string;
  asked: Asked[];
};

/** What a line of the log begins with that is a note of `watched`; the stack stands behind it. */
const NOTE = 'plugin-host notes: ';
/** Time for the start: as long as an execution may take, which a start may be a part of. */
const START_MS = 5000;

/** Names that functions of the host have for JavaScript. */
export type HostNames = Record<'deadline' | 'entries' | 'log' | 'random' | 'randomBytes', string>;

/**
 * The bundle with notes of what asks for what differs between executions, and of what it throws or where it is when its
 * time is over. All that stands before it is on its first line, so that no position changes.
 */
function watched(code: string, names: HostNames): string {
  const [random, randomBytes, log, deadline, entries] = [
    names.random,
    names.randomBytes,
    names.log,
    names.deadline,
    names.entries,
  ].map(name => JSON.stringify(name));
  const before = `"use strict";const note=(h=>(w,e)=>h(0,${JSON.stringify(NOTE)}+w+"\\n"+e.stack))(__host[${log}]);(()=>{const h=__host,D=Date,now=D.now,ask=w=>note(w,new Error());const none=()=>0;__host[${entries}](none,none,none,none,e=>note("late",e));__host[${deadline}](${START_MS});for(const k of[${random},${randomBytes}]){const f=h[k];h[k]=(...a)=>{ask("random");return f(...a)}}D.now=()=>{ask("clock");return now()};globalThis.Date=new Proxy(D,{construct(d,a,n){if(a.length===0)ask("clock");return Reflect.construct(d,a,n)},apply(d){ask("clock");return d()}})})();try{`;
  return `${before}${code}\n}catch(e){note("thrown",e instanceof Error?e:new Error());throw e}`;
}

/**
 * @param engine what `buildEngine` made
 * @param code the bundle
 * @param positions where its lines come from
 */
export function runStart(engine: Uint8Array, names: HostNames, code: string, positions: Uint8Array): StartRun {
  const script = new TextEncoder().encode(watched(code, names));
  const module = new WebAssembly.Module(new Uint8Array(linkPlugin(engine, new Set(), script, positions)));
  const out: StartRun = { manifest: '', failure: null, stack: '', asked: [] };
  let memory: WebAssembly.Memory | null = null;
  const bytes = (at: number, length: number): Uint8Array =>
    memory === null ? new Uint8Array() : new Uint8Array(memory.buffer, at, length);
  const text = (at: number, length: number): string => new TextDecoder().decode(bytes(at, length));
  const view = (): DataView => new DataView(memory?.buffer ?? new ArrayBuffer(0));
  const functions: Record<string, (...args: never[]) => number> = {
    output: (at: number, length: number) => {
      out.manifest = text(at, length);
      return 0;
    },
    fail: (at: number, length: number) => {
      out.failure ??= text(at, length);
      return 0;
    },
    log: (_level: number, at: number, length: number) => {
      const line = text(at, length);
      if (line.startsWith(NOTE)) {
        const [what, ...stack] = line.slice(NOTE.length).split('\n');
        if (what === 'late') out.failure = `it did not end within ${START_MS / 1000} s; look for an endless loop`;
        if (what === 'thrown' || what === 'late') out.stack = stack.join('\n');
        else out.asked.push({ what: what === 'random' ? 'random' : 'clock', stack: stack.join('\n') });
      }
      return 0;
    },
    random_get: (at: number, length: number) => {
      crypto.getRandomValues(bytes(at, length));
      return 0;
    },
    clock_time_get: (_clock: number, _precision: bigint, at: number) => {
      view().setBigUint64(at, BigInt(Date.now()) * 1_000_000n, true);
      return 0;
    },
  };
  const denied = (): number => -1;
  const imports: WebAssembly.Imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module))
    imports[from] = { ...imports[from], [name]: functions[name] ?? denied };
  const { exports } = new WebAssembly.Instance(module, imports);
  if (exports.memory instanceof WebAssembly.Memory) memory = exports.memory;
  const { _initialize: initialize, plugin_describe: describe } = exports;
  if (typeof initialize !== 'function' || typeof describe !== 'function')
    throw new Error('bug: this is not the engine');
  try {
    initialize();
    describe();
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
  }
  if (out.manifest === '') out.failure ??= NO_PLUGIN;
  return out;
}
