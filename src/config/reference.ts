import { z } from 'zod';
import { ROWS, type Row } from './keys.ts';
import { envNameOf } from './load.ts';

/** The page `docs/configuration.md`, made from the rows of `keys.ts`; `npm run docs` writes it, and a test compares. */

const HEAD = `# Configuration

This page answers which keys there are, what they mean, and what values they take. It is generated from the rows of
\`src/config/keys.ts\` by \`npm run docs\`; change a row there, not this page.

## Where values come from

A value of the environment counts before a credential of systemd, a credential before the file, and the file before the
default.

- The file is YAML. It is named by \`--config FILE\`, else by \`BOT_CONFIG\`; without both, or when \`BOT_CONFIG\` is
  empty, there is none.
- The environment name of a key is \`BOT_<SECTION>_<KEY>\`: \`http.port\` is \`BOT_HTTP_PORT\`.
- \`BOT_<SECTION>_<KEY>_FILE\` names a file that holds the value, for secrets: \`BOT_SMTP_PASSWORD_FILE\`. One line break
  at its end is left out.
- A credential of systemd with the name of a key (\`LoadCredential=smtp.password:/etc/plugin-host/smtp.password\`) is the
  value of that key.
- A list is a YAML list in the file, and words with commas between them in the environment.
- An unknown key or a wrong value ends the start with one line that names it.

\`\`\`yaml
http:
  port: 8080
  public_url: https://plugins.uni.example
  trusted_proxies: [127.0.0.1]
\`\`\`

Show every key with its effective value and source; secrets are hidden:

\`\`\`sh
npx plugin-host config check
npx plugin-host config check --json
\`\`\`
`;

/** Defaults that differ from machine to machine, in words. */
const MACHINE_DEFAULTS: Readonly<Record<string, string>> = {
  'serving.processes': 'one for each four processors, at most 7',
  'execution.memory_budget_mb': 'half of the memory of the machine, or of the control group the service runs in',
};

/** The default of a key in words where it differs from machine to machine; null otherwise. */
export const machineDefaultOf = (key: string): string | null => MACHINE_DEFAULTS[key] ?? null;

const UNITS: ReadonlyArray<readonly [bytes: number, name: string]> = [
  [1024 ** 3, 'GiB'],
  [1024 ** 2, 'MiB'],
];

function defaultOf(key: string, value: unknown): string {
  const words = machineDefaultOf(key);
  if (words !== null) return words;
  if (value === '' || (Array.isArray(value) && value.length === 0)) return 'empty';
  if (Array.isArray(value)) return `\`[${value.join(', ')}]\``;
  const unit = typeof value === 'number' ? UNITS.find(([bytes]) => value >= bytes && value % bytes === 0) : undefined;
  return unit === undefined ? `\`${value}\`` : `\`${value}\` (${Number(value) / unit[0]} ${unit[1]})`;
}

const BOUNDS = z.object({
  enum: z.array(z.string()).optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
});

/** Which values a row takes, as far as its check can tell: the words of an enumeration, bounds, or what it says of a wrong one. */
function valuesOf(row: Row<unknown>): string | null {
  const schema = z.toJSONSchema(row.check, { io: 'output', unrepresentable: 'any' });
  const { enum: words, maximum, minimum } = BOUNDS.parse(schema);
  if (words !== undefined) return `one of ${words.map(w => `\`${w}\``).join(', ')}`;
  if (typeof row.default === 'boolean') return '`true` or `false`';
  if (minimum !== undefined)
    return maximum === undefined || maximum === Number.MAX_SAFE_INTEGER
      ? `a number, at least ${minimum}`
      : `a number from ${minimum} to ${maximum}`;
  // A text no check takes, and a length of time that is longer than any bound.
  const mistakes = ['\0', '99999d'].flatMap(wrong => row.check.safeParse(wrong).error?.issues[0]?.message ?? []);
  const told = mistakes.flatMap(m => {
    const [, entry] = /^".*" in it is not (.+)$/.exec(m) ?? [];
    return entry === undefined ? (/^must be (.+)$/.exec(m)?.[1] ?? []) : `a list, each entry ${entry}`;
  });
  return told.length === 0 ? null : [...new Set(told)].join('; ');
}

/** Lines of at most 120 characters. */
function wrap(text: string, indent = ''): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > 120)
      lines.push(lines.length === 0 ? word : indent + word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join('\n');
}

function entryOf(key: string, row: Row<unknown>): string {
  const values = valuesOf(row);
  const facts = [
    `- Environment: \`${envNameOf(key)}\``,
    `- Default: ${defaultOf(key, row.default)}`,
    ...(values === null ? [] : [`- Values: ${values}`]),
    ...(row.secret === true ? ['- Secret: never shown'] : []),
  ];
  const about = `${row.about.slice(0, 1).toUpperCase()}${row.about.slice(1)}.`;
  return `### ${key}\n\n${wrap(about)}\n\n${facts.map(f => wrap(f, '  ')).join('\n')}\n`;
}

/** The whole page, one section for each section of the configuration. */
export function configurationReference(): string {
  const parts = [HEAD];
  let section = '';
  for (const [key, row] of Object.entries(ROWS) as Array<[string, Row<unknown>]>) {
    const own = key.split('.')[0] ?? '';
    if (own !== section) parts.push(`## Section ${own}\n`);
    section = own;
    parts.push(entryOf(key, row));
  }
  return parts.join('\n');
}
