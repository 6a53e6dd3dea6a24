import fs from 'node:fs';
import os from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { makeSemaphore } from '../base/semaphore.ts';
import { openDatabase } from '../db/database.ts';
import { readGraphSchema } from '../graph/graph-schema.ts';
import { importBatch } from './batch.ts';
import { ENTITIES, ENTITY_BY_TYPE } from './entities.ts';
import { httpSource } from './http-source.ts';
import type { FromThread, ImportSettings, ImportTask, TaskResult, ToThread } from './import-thread.ts';
import { runPull } from './pull.ts';
import { settleDates } from './sync.ts';

/** The thread of `import-thread.ts`. */
const NICE = 10;
/** A pull, a batch and their logs. */
const CONNECTIONS = 4;

try {
  os.setPriority(Number(fs.readlinkSync('/proc/thread-self').split('/').pop()), NICE);
} catch {
  // Only a courtesy to the others; not every system knows it.
}

const settings = workerData as ImportSettings;
const port = parentPort;
if (port === null) throw new Error('this file is the entry of a thread');
const db = openDatabase(settings.databaseUrl, CONNECTIONS, () => {});
const schema = readGraphSchema();
const source = httpSource(settings);
const running = new Map<number, AbortController>();

const tell = (message: FromThread): void => port.postMessage(message);

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined;
/** Each holds a connection while it writes. */
const batches = makeSemaphore(2);

async function settleAllDates(today: string): Promise<number> {
  let sum = 0;
  for (const entity of ENTITIES) {
    if (!('end_date' in entity.fields) || entity.dated !== true) continue;
    for (let n: number = LIMITS.universityChunk; n === LIMITS.universityChunk; sum += n)
      n = await settleDates({ db, schema }, entity, today, LIMITS.universityChunk);
  }
  return sum;
}

async function carryOut(id: number, task: ImportTask, signal: AbortSignal): Promise<TaskResult<ImportTask>> {
  switch (task.kind) {
    case 'batch': {
      const entity = ENTITY_BY_TYPE.get(task.type);
      if (entity === undefined) throw new Error(`there is no type ${task.type}`);
      return await batches(() => importBatch({ db, schema }, entity, task.order));
    }
    case 'pull': {
      const parts = { db, schema, source, directory: settings.directory, brakePercent: settings.brakePercent };
      return await runPull(
        parts,
        task.importId,
        task.order,
        progress => tell({ id, kind: 'progress', progress }),
        (type, problem) => tell({ id, kind: 'problem', type, problem }),
        signal,
      );
    }
    case 'dates':
      return await settleAllDates(task.today);
  }
}

port.on('message', (message: ToThread) => {
  const { id } = message;
  if ('abort' in message) {
    running.get(id)?.abort(new Error(message.abort));
    return;
  }
  const controller = new AbortController();
  running.set(id, controller);
  carryOut(id, message.task, controller.signal)
    .then(
      result => tell({ id, kind: 'done', result }),
      (error: unknown) =>
        tell(
          error instanceof ServiceError
            ? { id, kind: 'refused', code: error.code, message: error.message, errors: error.errors }
            : {
                id,
                kind: 'failed',
                message: messageOf(error),
                stack: error instanceof Error ? error.stack : undefined,
                code: codeOf(error),
              },
        ),
    )
    .finally(() => running.delete(id));
});
