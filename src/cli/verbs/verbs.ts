import { Command, CommanderError } from 'commander';
import { UsageError } from '../../base/errors.ts';
import { didYouMean } from '../../base/nearest-name.ts';
import { writeLine } from '../print/terminal.ts';
import type { Answer, Remote, RemoteFlags } from '../remote/remote.ts';

/** Verbs of the command line, as commander knows them. */

export type { Command } from 'commander';

/** Options of every verb. */
export type Flags = { config?: string; json?: boolean };

export const out = (text: string): void => writeLine(process.stdout, text);

/** Tells people what takes its time; a program that asked for JSON finds errors alone on standard error. */
export const progressOf =
  ({ json }: Flags): ((text: string) => void) =>
  text => {
    if (json !== true) writeLine(process.stderr, `[plugin-host] ${text}`);
  };

export const JSON_OPTION = ['--json', 'print JSON'] as const;

/** Collects the values of an option that may be given more than once. */
export const repeated = (value: string, before: string[]): string[] => [...before, value];

/** The words that lead to a command, without the program's own. */
export function wordsOf(command: Command | null): string[] {
  return command === null || command.parent === null ? [] : [...wordsOf(command.parent), command.name()];
}

/** A command that has others below it, and tells which when an unknown one is called. */
export function group(parent: Command, name: string, about: string): Command {
  return refuseUnknown(parent.command(name).description(about));
}

export function noCommand(parent: Command, unknown: string): UsageError {
  const words = wordsOf(parent);
  const names = parent.commands.map(c => c.name());
  return unlike(`there is no command "${[...words, unknown].join(' ')}"`, didYouMean(unknown, names), words);
}

/** What is wrong, what was probably meant, and where to read on. */
export function unlike(problem: string, nearest: string, words: readonly string[]): UsageError {
  const see = `plugin-host ${['help', ...words].join(' ')}`;
  return new UsageError(nearest === '' ? `${problem}; see: ${see}` : `${problem}${nearest} See: ${see}`);
}

export function refuseUnknown(command: Command): Command {
  return command.on('command:*', ([unknown = '']: string[]) => {
    throw noCommand(command, unknown);
  });
}

/** A verb: its name and arguments (`upload <file>`), what it is for, and what it does with its options and arguments. */
export function verb<T extends Flags>(
  parent: Command,
  name: string,
  about: string,
  run: (flags: T, args: readonly string[]) => unknown,
  isDefault = false,
): Command {
  return parent
    .command(name, { isDefault })
    .description(about)
    .action(async function (this: Command) {
      const empty = this.registeredArguments[this.args.indexOf('')];
      if (empty !== undefined) throw unlike(`argument '${empty.name()}' is empty`, '', wordsOf(this));
      await run(this.optsWithGlobals<T>(), this.args);
    });
}

export type RemoteRun<F> = (remote: Remote, args: readonly string[], flags: F) => Promise<Answer | null>;

/** Adds a verb that asks a service, below a group, or below the program itself. */
export type Add = <F extends RemoteFlags>(parent: Command, name: string, about: string, run: RemoteRun<F>) => Command;

/** The program itself, without a verb. */
export const makeCommand = (name: string): Command => refuseUnknown(new Command(name));

/** What commander throws instead of ending the process; undefined for anything else. */
export const asCommanderError = (error: unknown): CommanderError | undefined =>
  error instanceof CommanderError ? error : undefined;
