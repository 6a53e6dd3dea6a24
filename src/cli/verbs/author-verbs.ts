import { UsageError } from '../../base/errors.ts';
import type { MessageFlags } from '../local/message-command.ts';
import type { DevRemoteFlags } from '../remote/dev-remote.ts';
import type { Remote, RemoteFlags } from '../remote/remote.ts';
import { type Command, type Flags, JSON_OPTION, out, verb } from './verbs.ts';

/** Verbs of authors of plugins; below `plugin`, next to those that ask a service. */

type DevFlags = DevRemoteFlags & { port?: string; remote?: boolean };

/**
 * @param plugin the group `plugin`
 * @param remoteFor the service that flags name
 */
export function addAuthorVerbs(plugin: Command, remoteFor: (flags: RemoteFlags & Flags) => Promise<Remote>): void {
  const load = () => import('../local/author-commands.ts');
  verb<Flags & { lang?: string; template?: string; dev?: boolean; port?: string }>(
    plugin,
    'new <folder>',
    'make a folder for a new plugin',
    async (flags, [folder = '']) => {
      if (flags.dev === true && flags.json === true)
        throw new UsageError('--dev runs until it is stopped: leave out --json');
      const { devCommand, newCommand } = await load();
      out(await newCommand(folder, flags));
      if (flags.dev === true) await devCommand(folder, flags.port);
    },
  )
    .option('--lang <language>', 'ts (TypeScript), go (Go), rust (Rust), c (C) or as (AssemblyScript); ts without it')
    .option(
      '--template <name>',
      'what it begins with: http, messenger, files, sql, or a sample: hello, guestbook, booking, grades, weather, menu, filebox, recipes; or a plugin of the gallery, like office-hours; http without it',
    )
    .option('--dev', 'run it at once, as plugin dev does')
    .option('--port <number>', 'with --dev: where it listens, on 127.0.0.1; 8787 without it')
    .option(...JSON_OPTION);
  verb<Flags & { out?: string }>(
    plugin,
    'build',
    'build a plugin and check it as an upload would',
    async (flags, args) => out(await (await load()).buildCommand(args[0] ?? '.', flags)),
  )
    .argument('[folder]', 'folder of the plugin; the present one without it')
    .option('--out <file>', 'where to write the module; build/<id>.wasm without it')
    .option(...JSON_OPTION);
  verb(
    plugin,
    'inspect <file>',
    'show what a module declares and asks for; ends with 3 if it would be refused',
    async (flags, [file = '']) => {
      const answer = (await load()).inspectCommand(file, flags);
      const { exitCode, text } = typeof answer === 'string' ? { exitCode: 0, text: answer } : answer;
      out(text);
      process.exitCode = exitCode;
    },
  ).option(...JSON_OPTION);
  verb<Flags & { serve?: boolean }>(
    plugin,
    'test',
    'run the tests of a plugin against its built module',
    async (flags, [folder = '.', ...files]) => {
      process.exitCode = await (await load()).testCommand(folder, files, flags.serve);
    },
  )
    .argument('[folder]', 'folder of the plugin; the present one without it')
    .argument('[files...]', 'test files; all *.test.ts, *.http and *_test.go without them')
    .option('--serve', 'answer questions of a test in another language on the standard streams (kit of Go)');
  verb<DevFlags & Flags>(
    plugin,
    'dev',
    'run a plugin on this machine, and again at each change of its files',
    async (flags, [folder = '.']) => {
      if (flags.remote !== true) return (await load()).devCommand(folder, flags.port);
      return (await load()).devRemoteCommand(folder, await remoteFor(flags), flags);
    },
  )
    .argument('[folder]', 'folder of the plugin; the present one without it')
    .option('--port <number>', 'where it listens, on 127.0.0.1; 8787 without it')
    .option('--remote', 'upload and install each change on a service for tests, instead')
    .option('--accept-public', 'with --remote: accept that triggers become callable without a login')
    .option('--url <address>', 'with --remote: address of the service; else PLUGIN_HOST_URL')
    .option('--token <key>', 'with --remote: an administration key; else PLUGIN_HOST_TOKEN');
  for (const add of [addMessageVerb, addSigningVerbs]) add(plugin);
}

function addMessageVerb(plugin: Command): void {
  verb<MessageFlags>(
    plugin,
    'message <text>',
    'send a message to a plugin that plugin dev runs, as a messenger would',
    async (flags, [text = '']) => {
      const answer = await (await import('../local/message-command.ts')).messageCommand(text, flags);
      out(typeof answer === 'string' ? answer : answer.text);
      if (typeof answer !== 'string') process.exitCode = answer.exitCode;
    },
  )
    .option('--as <sender>', 'user:7, or guest for an account without a user; user:1 without it')
    .option('--file <path>', 'a file to send with it')
    .option('--mime-type <type>', 'of the file; application/octet-stream without it')
    .option('--save <folder>', 'where files that come back are written')
    .option('--port <number>', 'where plugin dev listens; 8787 without it')
    .option(...JSON_OPTION);
}

function addSigningVerbs(plugin: Command): void {
  const load = () => import('../local/signing-commands.ts');
  verb<Flags>(plugin, 'keygen <file>', 'make keys to sign modules with', async (flags, [file = '']) =>
    out((await load()).keygenCommand(file, flags)),
  ).option(...JSON_OPTION);
  verb<Flags & { key: string; frontend?: string; comment?: string }>(
    plugin,
    'sign <file>',
    'sign a module, so that administrators see who made it',
    async (flags, [file = '']) => out((await load()).signCommand(file, flags)),
  )
    .requiredOption('--key <file>', 'the secret key that plugin keygen has made')
    .option('--frontend <zip>', 'the frontend that is uploaded with it, which is signed too')
    .option('--comment <text>', 'a line that is signed too, and shown; the name of the file and the time without it')
    .option(...JSON_OPTION);
}
