import { GATE } from './gate-limits.ts';

/**
 * Estimates what V8's compilers need for a function, from counts in its body. Liftoff, the baseline compiler, makes one
 * pass and copies or merges the location of every local and operand stack value at every control instruction. TurboFan,
 * the optimizing compiler, builds a graph whose cost grows with control instructions and with the values that calls and
 * blocks pass on. The weights are measured (docs/RATIONALE.md "The gate") with the most expensive shapes in
 * test/support/expensive-modules.ts, on one core of 2.5 GHz.
 */

/** Numbers of parameters and results by type, function and tag. */
export type Signatures = {
  /** By type index. */
  parameters: number[];
  results: number[];
  /** Type index of each function, imported ones first. */
  functions: number[];
  /** Type index of each tag. */
  tags: number[];
};

/** Counts of one function body. */
export type BodyCounts = {
  /** Where the body starts in the module. */
  offset: number;
  bytes: number;
  /** Parameters and declared locals. */
  locals: number;
  /** Most values on the operand stack at once. */
  stack: number;
  /** Control instructions, different targets of each br_table, and calls inside try. */
  control: number;
  /** Sum of locals and operand stack values over all control instructions, where they are copied or merged. */
  carried: number;
  /** Sum of locals over all loops and inside try, where each may become a new value (a phi of the graph). */
  phis: number;
  /** Sum of locals over all entries of br_table. */
  atEntries: number;
  calls: number;
  /** Sum of locals and stack values over all calls. */
  atCalls: number;
  /** Values that calls, branches and blocks pass on, by their types. */
  passed: number;
  /** Sum of the sizes of all loop bodies; nested ones count once for each loop around them. */
  looped: number;
};

/** Weights of one count: nanoseconds and bytes of the baseline compiler, nanoseconds of the optimizing one. */
type Weight = {
  ns: number;
  bytes: number;
  optimizedNs: number;
  count(c: BodyCounts): number;
  what(c: BodyCounts): string;
};

const WEIGHTS: readonly Weight[] = [
  { ns: 20, bytes: 30, optimizedNs: 350, count: c => c.bytes, what: () => 'bytes of code' },
  { ns: 80, bytes: 100, optimizedNs: 5000, count: c => c.control, what: () => 'control instructions' },
  {
    ns: 7,
    bytes: 12,
    optimizedNs: 6,
    count: c => c.carried,
    what: c => `locals and stack values, added up over ${c.control} control instructions`,
  },
  { ns: 0, bytes: 0, optimizedNs: 200, count: c => c.phis, what: () => 'locals at loops and inside try' },
  {
    ns: 1,
    bytes: 0,
    optimizedNs: 10,
    count: c => c.atEntries,
    what: () => 'locals, added up over the entries of br_table',
  },
  { ns: 150, bytes: 250, optimizedNs: 4500, count: c => c.calls, what: () => 'calls' },
  {
    ns: 3,
    bytes: 0.2,
    optimizedNs: 3,
    count: c => c.atCalls,
    what: c => `locals and stack values, added up over ${c.calls} calls`,
  },
  {
    ns: 140,
    bytes: 40,
    optimizedNs: 3500,
    count: c => c.passed,
    what: () => 'values passed by calls, branches and blocks',
  },
  {
    ns: 0,
    bytes: 0,
    optimizedNs: 3.5,
    count: c => c.looped,
    what: () => 'bytes in loops, once for each loop around them',
  },
  // To free a register, the compiler searches all values on the stack.
  {
    ns: 0.04,
    bytes: 0,
    optimizedNs: 0,
    count: c => c.bytes * (c.locals + c.stack),
    what: c => `bytes of code times its ${c.locals} locals and ${c.stack} stack values`,
  },
];
/** Fixed cost of a function. */
const FUNCTION_NS = 3000;

export type CompileCost = { baselineMs: number; baselineBytes: number; optimizedMs: number };

export function compileCost(counts: BodyCounts): CompileCost {
  let [ns, bytes, optimizedNs] = [FUNCTION_NS, 0, FUNCTION_NS * 10];
  for (const weight of WEIGHTS) {
    const count = weight.count(counts);
    ns += count * weight.ns;
    bytes += count * weight.bytes;
    optimizedNs += count * weight.optimizedNs;
  }
  return { baselineMs: ns / 1e6, baselineBytes: bytes, optimizedMs: optimizedNs / 1e6 };
}

/** Names the count with the largest cost. */
function mostOf(counts: BodyCounts, key: 'ns' | 'bytes'): string {
  let most = -1;
  let words = '';
  for (const weight of WEIGHTS) {
    const count = weight.count(counts);
    if (count * weight[key] <= most) continue;
    most = count * weight[key];
    words = `${count} ${weight.what(counts)}`;
  }
  return words;
}

export type CompileRefusal = { rule: 'compile-memory' | 'compile-time'; message: string; offset: number };

/**
 * Refuses one function that is too expensive to compile.
 *
 * @returns null if it is not too expensive
 */
export function refuseFunction(index: number, counts: BodyCounts, cost: CompileCost): CompileRefusal | null {
  const where = `function ${index} at byte ${counts.offset}`;
  if (cost.baselineBytes > GATE.compileFunctionBytes)
    return {
      rule: 'compile-memory',
      offset: counts.offset,
      message: `${where} would take about ${mb(cost.baselineBytes)} MB to compile; at most ${mb(GATE.compileFunctionBytes)} MB are allowed. Counted: ${mostOf(counts, 'bytes')}. Split the function`,
    };
  if (cost.baselineMs > GATE.compileFunctionMs)
    return {
      rule: 'compile-time',
      offset: counts.offset,
      message: `${where} would take about ${Math.round(cost.baselineMs)} ms to compile; at most ${GATE.compileFunctionMs} ms are allowed. Counted: ${mostOf(counts, 'ns')}. Split the function`,
    };
  return null;
}

const mb = (bytes: number): number => Math.round(bytes / 1024 / 1024);

/**
 * Decides which functions the optimizing compiler compiles: functions with loops before others, cheap ones first, up to
 * a budget for the module, and none that is too expensive by itself. The baseline compiler compiles the others. Each is
 * compiled once, before the code runs.
 *
 * @returns for each function the module defines, whether it is optimized; or why the whole module is too expensive
 */
export function planCompilation(bodies: readonly BodyCounts[]): boolean[] | CompileRefusal {
  const costs = bodies.map(compileCost);
  const baselineMs = costs.reduce((sum, c) => sum + c.baselineMs, 0);
  if (baselineMs > GATE.compileModuleMs) {
    const bytes = bodies.reduce((sum, b) => sum + b.bytes, 0);
    return {
      rule: 'compile-time',
      offset: bodies[0]?.offset ?? 0,
      message: `the module would take about ${Math.round(baselineMs)} ms to compile; at most ${GATE.compileModuleMs} ms are allowed. Counted: ${bodies.length} functions with ${bytes} bytes of code`,
    };
  }
  const optimized = bodies.map(() => false);
  let left: number = GATE.optimizeModuleMs;
  // Loops first, because most time is spent there: an interpreter of a language is one function with a loop.
  const order = costs.map((c, index) => ({ index, ms: c.optimizedMs, loops: (bodies[index]?.looped ?? 0) > 0 }));
  order.sort((a, b) => Number(b.loops) - Number(a.loops) || a.ms - b.ms);
  for (const { index, ms } of order) {
    if (ms > left || ms > GATE.optimizeFunctionMs) continue;
    left -= ms;
    optimized[index] = true;
  }
  return optimized;
}
