import type { CommandOutline, OptionOutline, ProgramOutline } from './command-outline.ts';

/** Text for roff (groff_man(7)): a hyphen of an option can be copied, and no line begins with a request. */
const roff = (text: string): string =>
  text
    .replace(/\\/g, '\\e')
    .replace(/-/g, '\\-')
    .replace(/^([.'])/gm, '\\&$1');

const optionLines = (options: readonly OptionOutline[]): string[] =>
  options.flatMap(o => ['.TP', `.B ${roff(o.flags)}`, roff(o.about)]);

function commandLines({ words, args, about, options }: CommandOutline): string[] {
  const given = args.map(a => ` \\fI${roff(a)}\\fR`).join('');
  const nested = options.length === 0 ? [] : ['.RS', ...optionLines(options), '.RE'];
  return ['.TP', `\\fB${roff(words.join(' '))}\\fR${given}`, roff(about), ...nested];
}

const EXIT = [
  ['0', 'it was done'],
  ['1', 'it failed, and a line says why'],
  ['2', 'the command was not understood'],
  ['3', 'the service found what it was sent wrong'],
];

const FILES = [
  ['/etc/plugin-host/config.yaml', 'the configuration, for the unit of systemd'],
  ['/etc/credstore/plugin-host.SECTION.KEY', 'the secret value of a key, for the unit of systemd'],
  ['/var/lib/plugin-host', 'the data directory, for the unit of systemd'],
];

const ENVIRONMENT = [
  ['BOT_CONFIG', 'YAML file with the configuration'],
  ['BOT_SECTION_KEY', 'the value of section.key; goes before the file'],
  ['BOT_SECTION_KEY_FILE', 'a file that holds the value of section.key'],
  ['PLUGIN_HOST_URL', 'address of the service for commands that ask it; else that of the configuration'],
  ['PLUGIN_HOST_TOKEN', 'the administration key for them'],
];

const terms = (pairs: readonly string[][]): string[] =>
  pairs.flatMap(([term = '', about = '']) => ['.TP', `.B ${roff(term)}`, roff(about)]);

/** The manual page plugin-host(1). */
export function manPage(program: ProgramOutline, version: string): string {
  return [
    `.TH PLUGIN\\-HOST 1 "" "plugin\\-host ${roff(version)}"`,
    '.SH NAME',
    `plugin\\-host \\- ${roff(program.about.replace(/^./, c => c.toLowerCase()))}`,
    '.SH SYNOPSIS',
    '.B plugin\\-host',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    'A service on which a university runs small WebAssembly plugins, each request in a fresh sandbox.',
    '.B plugin\\-host serve',
    'runs it; the other commands look after it.',
    '.SH COMMANDS',
    ...program.commands.flatMap(commandLines),
    '.SH OPTIONS',
    ...optionLines(program.options),
    '.SH EXIT STATUS',
    ...terms(EXIT),
    '.SH ENVIRONMENT',
    ...terms(ENVIRONMENT),
    '.SH FILES',
    ...terms(FILES),
    '.SH SEE ALSO',
    '/usr/share/doc/plugin\\-host/operating.md',
    '',
  ].join('\n');
}
