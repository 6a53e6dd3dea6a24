import { Session } from 'node:inspector';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { decodePositions, POSITIONS_SECTION, placesAt } from '../abi/positions.ts';

/** A thread that waits, in a host call or for work, does not stop in this time. */
const PATIENCE_MS = 300;

/** A function of a module that runs: its name, and the offset of the instruction in the module. */
export type RunningFrame = { name: string; offset: number };

const attachedTo = z.object({ params: z.object({ sessionId: z.string() }) });
const received = z.object({ params: z.object({ sessionId: z.string(), message: z.string() }) });
const paused = z.object({
  method: z.literal('Debugger.paused'),
  params: z.object({
    callFrames: z.array(
      z.object({
        functionName: z.string(),
        location: z.object({ lineNumber: z.number(), columnNumber: z.number().optional() }),
      }),
    ),
  }),
});

/** V8 writes functions of modules with a dollar sign, and modules have one line. */
const framesOf = ({ params }: z.infer<typeof paused>): RunningFrame[] =>
  params.callFrames.flatMap(({ functionName: name, location: { columnNumber = 0, lineNumber } }) =>
    name.startsWith('$') && lineNumber === 0 ? [{ name: name.slice(1), offset: columnNumber }] : [],
  );

/**
 * Finds out what the threads of this process run of WebAssembly, by V8's own debugger: it stops each for a moment. An
 * execution in an endless loop cannot say where it is.
 *
 * @returns the frames of each thread that runs a module, the innermost first
 */
export async function runningFrames(): Promise<RunningFrame[][]> {
  const session = new Session();
  session.connect();
  const threads: string[] = [];
  const found: RunningFrame[][] = [];
  let id = 0;
  const send = (sessionId: string, method: string): void =>
    session.post('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify({ id: ++id, method }) });
  session.on('NodeWorker.attachedToWorker', event => {
    const { sessionId } = attachedTo.parse(event).params;
    threads.push(sessionId);
    send(sessionId, 'Debugger.enable');
    send(sessionId, 'Debugger.pause');
  });
  session.on('NodeWorker.receivedMessageFromWorker', event => {
    const { message, sessionId } = received.parse(event).params;
    const stopped = paused.safeParse(JSON.parse(message));
    if (!stopped.success) return;
    send(sessionId, 'Debugger.disable');
    const frames = framesOf(stopped.data);
    if (frames.length > 0) found.push(frames);
  });
  try {
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
    await sleep(PATIENCE_MS);
    for (const sessionId of threads) send(sessionId, 'Debugger.disable');
    await new Promise<void>(resolve => session.post('NodeWorker.disable', () => resolve()));
  } finally {
    session.disconnect();
  }
  return found;
}

/**
 * The author's functions among frames, as lines for the terminal.
 *
 * @param module what ran, whose positions name files and lines; null where only names are known, as in Go
 */
export function authorLines(frames: readonly RunningFrame[], module: WebAssembly.Module | null): string[] {
  const [section] = module === null ? [] : WebAssembly.Module.customSections(module, POSITIONS_SECTION);
  const positions = section === undefined ? null : decodePositions(new Uint8Array(section));
  if (positions === null) return frames.filter(f => f.name.startsWith('main.')).map(f => `at ${f.name}`);
  return frames.flatMap(frame =>
    placesAt(positions, frame.offset).map(({ file, line, name }) => `at ${name ?? frame.name} (${file}:${line})`),
  );
}
