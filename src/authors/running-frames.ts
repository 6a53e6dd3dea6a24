import { Session } from 'node:inspector';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { customSections } from '../abi/custom-section.ts';
import { decodePositions, POSITIONS_SECTION, placesAt } from '../abi/positions.ts';

/** Time for a thread to stop: one that computes for long has the lowest priority. One that waits does not stop at all. */
const PATIENCE_MS = 1200;
const LOOK_MS = 40;
const SHOWN_MAX = 8;

/** What a thread runs: functions of a module, the innermost first, with the offset of the instruction in the module. */
type Running = { frames: Array<{ name: string; offset: number }>; module: Uint8Array | null };

const attachedTo = z.object({ params: z.object({ sessionId: z.string() }) });
const received = z.object({ params: z.object({ sessionId: z.string(), message: z.string() }) });
const paused = z.object({
  method: z.literal('Debugger.paused'),
  params: z.object({
    callFrames: z.array(
      z.object({
        functionName: z.string(),
        location: z.object({ scriptId: z.string(), lineNumber: z.number(), columnNumber: z.number().optional() }),
      }),
    ),
  }),
});
const source = z.object({ id: z.number(), result: z.object({ bytecode: z.string() }) });

/** V8 writes functions of modules with a dollar sign, and modules have one line. */
const ofModule = ({ params }: z.infer<typeof paused>) =>
  params.callFrames.filter(f => f.functionName.startsWith('$') && f.location.lineNumber === 0);

/** The author's functions among frames, as lines for the terminal. */
function authorLines({ frames, module }: Running): string[] {
  const [section] = module === null ? [] : customSections(module, POSITIONS_SECTION);
  const positions = section === undefined ? null : decodePositions(section.content);
  // Of Go only the names are known.
  const lines =
    positions === null
      ? frames.filter(f => f.name.startsWith('main.')).map(f => `at ${f.name}`)
      : frames.flatMap(frame =>
          placesAt(positions, frame.offset).map(
            ({ file, line, name }) => `at ${name ?? frame.name} (${line === 0 ? file : `${file}:${line}`})`,
          ),
        );
  return lines.slice(0, SHOWN_MAX);
}

/** Stops each thread of this process for a moment by V8's own debugger. */
async function stopThreads(session: Session): Promise<Running[]> {
  const threads: string[] = [];
  const found = new Map<string, Running>();
  let id = 0;
  const send = (sessionId: string, method: string, params: object = {}): void =>
    session.post('NodeWorker.sendMessageToWorker', {
      sessionId,
      message: JSON.stringify({ id: ++id, method, params }),
    });
  session.on('NodeWorker.attachedToWorker', event => {
    const { sessionId } = attachedTo.parse(event).params;
    threads.push(sessionId);
    send(sessionId, 'Debugger.enable');
    send(sessionId, 'Debugger.pause');
  });
  session.on('NodeWorker.receivedMessageFromWorker', event => {
    const { message, sessionId } = received.parse(event).params;
    const value: unknown = JSON.parse(message);
    const stopped = paused.safeParse(value);
    const given = source.safeParse(value);
    const running = found.get(sessionId);
    if (given.success && running !== undefined) running.module = Buffer.from(given.data.result.bytecode, 'base64');
    if (!stopped.success) return;
    const frames = ofModule(stopped.data);
    const [first] = frames;
    if (first !== undefined) {
      const named = frames.map(f => ({ name: f.functionName.slice(1), offset: f.location.columnNumber ?? 0 }));
      found.set(sessionId, { frames: named, module: null });
      send(sessionId, 'Debugger.getScriptSource', { scriptId: first.location.scriptId });
    }
    send(sessionId, 'Debugger.disable');
  });
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  const isFound = (): boolean => found.size > 0 && [...found.values()].every(r => r.module !== null);
  for (let waited = 0; waited < PATIENCE_MS && !isFound(); waited += LOOK_MS) await sleep(LOOK_MS);
  for (const sessionId of threads) send(sessionId, 'Debugger.disable');
  await new Promise<void>(resolve => session.post('NodeWorker.disable', () => resolve()));
  return [...found.values()];
}

let isLooking = false;

/**
 * Finds out where executions in this process are: one in an endless loop cannot say so.
 *
 * @returns lines for each thread that runs a function of the author, the innermost first; none while another call looks
 */
export async function runningFrames(): Promise<string[][]> {
  if (isLooking) return [];
  isLooking = true;
  const session = new Session();
  session.connect();
  try {
    return (await stopThreads(session)).map(authorLines).filter(lines => lines.length > 0);
  } finally {
    session.disconnect();
    isLooking = false;
  }
}
