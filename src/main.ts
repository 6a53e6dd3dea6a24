#!/usr/bin/env node
import { writeText } from './cli/print/terminal.ts';
import { exitCodeOf, failureText } from './cli/remote/failure-text.ts';

/** Process entry; the one place that reads argv and the environment. */

async function main(args: string[]): Promise<void> {
  // The supervisor's own children; the path behind the word, of the data or of the socket, tells operators whose they are.
  if (args[0] === 'serving') return (await import('./app/serving.ts')).runServing(process.env.JOURNAL_STREAM);
  if (args[0] === 'spicedb')
    return (await import('./supervisor/stores/spicedb-bridge.ts')).runSpicedbBridge(args[1] ?? '');
  const { runCommandLine } = await import('./cli/verbs/command-line.ts');
  const { argv, execArgv: nodeArgs, execPath: node } = process;
  await runCommandLine({ entry: argv[1] ?? '', node, nodeArgs, args }, process.env);
}

/** A package of the release that is not installed; a file of the sources that is missing is a bug and keeps its stack. */
const lacksPackage = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  error.code === 'ERR_MODULE_NOT_FOUND' &&
  error.message.startsWith('Cannot find package');

const args = process.argv.slice(2);
main(args).catch((error: unknown) => {
  const help = lacksPackage(error) ? ': the installation is not complete, run npm ci' : '';
  writeText(process.stderr, failureText(error, args.includes('--json'), help));
  process.exit(exitCodeOf(error));
});
