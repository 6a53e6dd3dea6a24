import { ROWS, type Row } from './keys.ts';
import { envNameOf } from './load.ts';
import { machineDefaultOf } from './reference.ts';

const HEAD = `# Configuration of the plugin host. Every key stands here as a comment, with its default: remove the # of those to
# change. Then check the file and the machine, and take it into use:
#
#   plugin-host config check --config FILE
#   plugin-host doctor --config FILE
#   systemctl reload plugin-host
#
# Secrets are better kept out of this file: the unit of systemd reads them from /etc/credstore/plugin-host.SECTION.KEY.`;

const WIDTH = 118;

function comment(text: string, indent: string): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || indent.length + 3 + last.length + word.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map(l => `${indent}# ${l}`).join('\n');
}

function entry(key: string, name: string, row: Row<unknown>, indent: string, given?: string): string {
  const words = machineDefaultOf(key);
  const about = [
    `${row.about} (${envNameOf(key)})`,
    ...(words === null ? [] : [`default: ${words}`]),
    ...(row.secret === true ? [`a secret: better in the file /etc/credstore/plugin-host.${key}`] : []),
  ];
  const value = words === null ? JSON.stringify(row.default) : '';
  const line = given === undefined ? `#${name}: ${value}` : `${name}: ${JSON.stringify(given)}`;
  return `${comment(about.join('; '), indent)}\n${indent}${line}`.trimEnd();
}

/**
 * A configuration file in YAML: every key is a comment with its meaning and default.
 *
 * @param given values by key that are set in it; without any the file changes nothing
 */
export function exampleFile(given: Readonly<Record<string, string>> = {}): string {
  const parts = [HEAD];
  let before: string[] = [];
  for (const [key, row] of Object.entries(ROWS) as Array<[string, Row<unknown>]>) {
    const words = key.split('.');
    const name = words.pop() ?? '';
    const at = words.findIndex((word, k) => before[k] !== word);
    if (at >= 0)
      for (const [k, word] of words.entries())
        if (k >= at) parts.push(`${k === 0 ? '\n' : ''}${'  '.repeat(k)}${word}:`);
    parts.push(entry(key, name, row, '  '.repeat(words.length), given[key]));
    before = words;
  }
  return `${parts.join('\n')}\n`;
}
