import fs from 'node:fs';
import { z } from 'zod';
import { GLOBAL_VALUE_BYTES, GLOBAL_VALUES_AT } from '../abi/host-memory.ts';
import { REPORT_LENGTH_BYTES, type StartReport } from '../abi/start-report.ts';
import { LIMITS, PAGE_BYTES } from '../base/limits.ts';
import type { Finding } from './finding.ts';
import { GATE } from './gate/gate-limits.ts';
import type { ModuleOutline } from './gate/module.ts';
import type { StartImage } from './gate/start-image.ts';

/** Rule of the finding about the start of a module. */
export const START_RULE = 'start';

const REFERENCES = ['funcref', 'externref', 'exnref'];

const report: z.ZodType<StartReport> = z.object({
  failure: z.string().nullable(),
  asked: z.object({ random: z.int(), clock: z.int(), output: z.int() }),
  closed: z.boolean(),
  tablesChanged: z.boolean(),
  sleeps: z.boolean(),
  overflowed: z.boolean(),
  pages: z.int().min(0).max(LIMITS.memoryPagesMax),
  imageBytes: z.int(),
  extents: z.array(z.tuple([z.int(), z.int()])),
});

/** What the start of a module left, as its file says. */
type StartDump = { report: StartReport; image: StartImage; nullReferences: boolean };

/** @throws Error if the file is not whole */
function readDump(file: string, outline: ModuleOutline, controlPages: number): StartDump {
  const bytes = fs.readFileSync(file);
  const reportEnd = REPORT_LENGTH_BYTES + (bytes.length < REPORT_LENGTH_BYTES ? 0 : bytes.readUInt32LE(0));
  if (bytes.length < Math.max(REPORT_LENGTH_BYTES, reportEnd)) throw new Error('the report of the start is cut off');
  const read = report.parse(JSON.parse(bytes.toString('utf8', REPORT_LENGTH_BYTES, reportEnd)));
  const mutable = outline.globals.filter(g => g.mutable);
  const hasImage = read.failure === null && read.imageBytes <= LIMITS.startImageBytesMax;
  const imageAt = reportEnd + (hasImage ? controlPages * PAGE_BYTES : 0);
  if (bytes.length !== imageAt + (hasImage ? read.imageBytes : 0)) throw new Error('the image of the start is cut off');
  const globalsAt = reportEnd + GLOBAL_VALUES_AT;
  const globals = bytes.subarray(globalsAt, globalsAt + mutable.length * GLOBAL_VALUE_BYTES);
  let at = imageAt;
  let end = 0;
  const extents = read.extents.map(([address, length]) => {
    const content = bytes.subarray(at, at + length);
    if (address < end || length < 1 || content.length !== length)
      throw new Error('the image of the start is malformed');
    at += length;
    end = address + length;
    return { address, content };
  });
  if (at !== bytes.length || end > read.pages * PAGE_BYTES) throw new Error('the image of the start is malformed');
  const isNull = (k: number): boolean => globals[k * GLOBAL_VALUE_BYTES] === 1;
  // A function that only the value of such a global names could not be named by code without it.
  const nullReferences = mutable.every((g, k) => !REFERENCES.includes(g.type) || (g.isNull && isNull(k)));
  return { report: read, image: { pages: read.pages, extents, globals }, nullReferences };
}

const times = (n: number): string => (n === 1 ? 'once' : `${n} times`);

/** What a start asked for that may differ between executions, in words; empty if nothing. */
function askedFor({ clock, output, random }: StartReport['asked']): string {
  const parts = [
    ...(random > 0 ? [`drew random numbers (${times(random)})`] : []),
    ...(clock > 0 ? [`read the clock (${times(clock)})`] : []),
    ...(output > 0 ? [`wrote output (${times(output)})`] : []),
  ];
  return parts.length < 2 ? (parts[0] ?? '') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}

/** Why the start cannot be remembered at all; null if it can. */
function whyNot({ nullReferences, report: r }: StartDump, outline: ModuleOutline): string | null {
  if (r.tablesChanged) return 'it changes a table';
  if (outline.dropsSegments) return 'the module drops segments';
  if (r.closed) return 'it closes a standard descriptor';
  if (outline.namesDataSegments && outline.dataSegments.length + r.extents.length > GATE.dataSegments)
    return `the module has more than ${GATE.dataSegments - r.extents.length} data segments`;
  if (r.imageBytes > LIMITS.startImageBytesMax)
    return `it leaves ${inWords(r.imageBytes)} of memory, and at most ${inWords(LIMITS.startImageBytesMax)} are kept`;
  return nullReferences ? null : 'a global variable holds a reference before it or after it';
}

/** A number of bytes in words. */
const inWords = (bytes: number): string =>
  bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / 2 ** 20).toFixed(1)} MB`;

/** The trial of a start as the thread of the gate gets it: the file it wrote, or why it wrote none. */
export type StartOutcome = { file: string; controlPages: number } | { stopped: string };

/**
 * Decides whether the start of a module is remembered (docs/plugins.md, "Start").
 *
 * @param once whether the manifest says `"start": "once"`
 * @returns what it left, or null to run it in each execution; and the finding that says so
 */
export function rememberStart(
  outcome: StartOutcome,
  outline: ModuleOutline,
  once: boolean,
): { image: StartImage | null; finding: Finding } {
  const repeated = (reason: string): { image: null; finding: Finding } => ({
    image: null,
    finding: { level: 'note', rule: START_RULE, message: `its start runs in every execution, because ${reason}` },
  });
  if ('stopped' in outcome) return { image: null, finding: { ...repeated(outcome.stopped).finding, level: 'warning' } };
  const dump = readDump(outcome.file, outline, outcome.controlPages);
  const { asked, failure, imageBytes, overflowed, sleeps } = dump.report;
  if (sleeps) return repeated('it sleeps for more than a second');
  if (failure !== null) {
    // Another execution may draw other numbers, and has more of the stack to itself.
    const surely = askedFor(asked) === '' && !overflowed;
    const message = `its start failed${surely ? ', and so will every execution' : ' at the upload'}: ${failure}`;
    return { image: null, finding: { level: 'warning', rule: START_RULE, message } };
  }
  const reason = whyNot(dump, outline);
  if (reason !== null) return repeated(reason);
  const impure = askedFor(asked);
  if (impure !== '' && !once)
    return repeated(
      `it ${impure}; if no execution needs its own, "start": "once" in the manifest lets it be remembered`,
    );
  const left = imageBytes === 0 ? 'where it ended' : `with the ${inWords(imageBytes)} of memory it left`;
  const kept = `its start is remembered: it ran once, at the upload, and every execution begins ${left}`;
  const shared = asked.random + asked.clock > 0 ? 'All executions share what it got' : 'No execution writes that again';
  return {
    image: dump.image,
    finding:
      impure === ''
        ? { level: 'note', rule: START_RULE, message: kept }
        : {
            level: 'warning',
            rule: START_RULE,
            message: `${kept}. It ${impure}. ${shared}, because the manifest says "start": "once". The kit for Go says so: its random numbers and times of day are new in each execution, and only what your own code kept at the start is shared`,
          },
  };
}
