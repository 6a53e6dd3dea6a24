import { StartError } from '../children/child.ts';
import type { ServingProcess } from './serving-process.ts';

/** A process whose event loop turns answers at once. */
const QUIET_MS = 5000;

function quietenOne(serving: ServingProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => reject(new StartError(`the serving process ${serving.pid} did not answer within ${QUIET_MS / 1000} s`)),
      QUIET_MS,
    );
    const done = (): void => {
      clearTimeout(late);
      resolve();
    };
    serving.noteQuiet = done;
    serving.child.once('exit', done);
    serving.send({ kind: 'supervisor_changes' });
  });
}

/**
 * Lets processes keep what they have to say, so that no message is half read when another program reads on. What was sent to
 * them before has arrived as well then.
 *
 * @throws StartError when one does not answer
 */
export async function quieten(processes: Iterable<ServingProcess>): Promise<void> {
  await Promise.all([...processes].map(quietenOne));
}
