import fs from 'node:fs';
import { z } from 'zod';
import { GLOBAL_VALUE_BYTES, GLOBAL_VALUES_AT } from '../abi/host-memory.ts';
import { REPORT_LENGTH_BYTES, type StartReport } from '../abi/start-report.ts';
import { LIMITS, PAGE_BYTES } from '../base/limits.ts';
import type { Finding } from './finding.ts';
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
  pages: z.int().min(0).max(LIMITS.memoryPagesMax),
  imageBytes: z.int(),
  extents: z.array(z.tuple([z.int(), z.int()])),
});

/** What the start of a module left, as its file says. */
type StartDump = { report: StartReport; image: StartImage; nullReferences: boolean };

function readDump(file: string, outline: ModuleOutline, controlPages: number): StartDump {
  const bytes = fs.readFileSync(file);
  const reportEnd = REPORT_LENGTH_BYTES + bytes.readUInt32LE(0);
  const read = report.parse(JSON.parse(bytes.toString('utf8', REPORT_LENGTH_BYTES, reportEnd)));
  const mutable = outline.globals.filter(g => g.mutable);
  const globalsAt = reportEnd + GLOBAL_VALUES_AT;
  const globals = bytes.subarray(globalsAt, globalsAt + mutable.length * GLOBAL_VALUE_BYTES);
  let at = reportEnd + controlPages * PAGE_BYTES;
  const extents = read.extents.map(([address, length]) => {
    const content = bytes.subarray(at, at + length);
    at += length;
    return { address, content };
  });
  const nullReferences = mutable.every(
    ({ type }, k) => !REFERENCES.includes(type) || globals[k * GLOBAL_VALUE_BYTES] === 1,
  );
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
  if (!nullReferences) return 'it leaves a reference in a global variable';
  if (r.closed) return 'it closes a standard descriptor';
  if (r.imageBytes > LIMITS.startImageBytesMax)
    return `it leaves ${inWords(r.imageBytes)} of memory, and at most ${inWords(LIMITS.startImageBytesMax)} are kept`;
  return null;
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
  if ('stopped' in outcome) return repeated(outcome.stopped);
  const dump = readDump(outcome.file, outline, outcome.controlPages);
  const { asked, failure, imageBytes } = dump.report;
  if (failure !== null)
    return {
      image: null,
      finding: {
        level: 'warning',
        rule: START_RULE,
        message: `its start fails, and so will every execution: ${failure}`,
      },
    };
  const reason = whyNot(dump, outline);
  if (reason !== null) return repeated(reason);
  const impure = askedFor(asked);
  if (impure !== '' && !once)
    return repeated(
      `it ${impure}; if no execution needs its own, "start": "once" in the manifest lets it be remembered`,
    );
  const kept = `its start is remembered: it ran once, at the upload, and every execution begins with the ${inWords(imageBytes)} of memory it left`;
  return {
    image: dump.image,
    finding:
      impure === ''
        ? { level: 'note', rule: START_RULE, message: kept }
        : {
            level: 'warning',
            rule: START_RULE,
            message: `${kept}. It ${impure}, and all executions share what it got: the manifest says "start": "once"`,
          },
  };
}
