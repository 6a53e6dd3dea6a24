import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parse as parseYaml, YAMLParseError } from 'yaml';
import { z } from 'zod';
import { messageOf, OperatorError } from '../base/errors.ts';
import { fileProblem } from '../base/file-problem.ts';
import { didYouMean } from '../base/nearest-name.ts';
import { ROWS, type Row } from './keys.ts';
import { PluginOrigins } from './plugin-origins.ts';
import { credstoreHint, type GivenValue, readCredentials, readCredstore, readValueFile } from './value-files.ts';
import { shown, valueProblem } from './value-problem.ts';

/** A mistake in the configuration: one line that says where it is and what would be right. */
export class ConfigError extends OperatorError {
  override readonly name = 'ConfigError';
  /** The message for readers who may not read the file: without words of it, which may be a secret in the wrong place. */
  readonly outside: string;

  constructor(message: string, { outside = message, ...options }: ErrorOptions & { outside?: string } = {}) {
    super(message, options);
    this.outside = outside;
  }
}

export type ConfigKey = keyof typeof ROWS;
type Values = { readonly [K in ConfigKey]: (typeof ROWS)[K] extends Row<infer T> ? T : never };

export const CONFIG_SOURCES = ['default', 'file', 'credential', 'env', 'start'] as const;
/** `start`: found out by the service when it started. */
export type ConfigSource = (typeof CONFIG_SOURCES)[number];
export type Config = {
  readonly values: Values;
  readonly sources: Readonly<Record<ConfigKey, ConfigSource>>;
  readonly file: string | null;
  /** What to say where a value is missed that this account may not read; empty when it could read all there is. */
  readonly unread: string;
};

const KEYS = Object.keys(ROWS) as ConfigKey[];
const CHECK_HINT = 'plugin-host config check says more';

/** Environment name of a key: `http.max_body` -> `BOT_HTTP_MAX_BODY`. */
export function envNameOf(key: string): string {
  return `BOT_${key.replaceAll('.', '_').toUpperCase()}`;
}

const isKey = (key: string): key is ConfigKey => Object.hasOwn(ROWS, key);

/** Names that stand in the environment but are no keys: the file itself. */
const OTHER_ENV = new Set(['BOT_CONFIG']);

function unknownKey(key: string, known: readonly string[], where: string): ConfigError {
  const nearest = didYouMean(key, known);
  const message = `${where}: unknown key "${key}"${nearest || '; plugin-host config example lists all keys'}`;
  // A name that is like a key is a slip; another may be a value.
  return new ConfigError(message, { outside: nearest === '' ? `${where}: unknown key; ${CHECK_HINT}` : message });
}

/** Names of keys and groups in a section or group. */
const namesIn = (prefix: string): string[] => [
  ...new Set(KEYS.filter(k => k.startsWith(`${prefix}.`)).map(k => k.slice(prefix.length + 1).split('.')[0] ?? '')),
];

/** Keys stand below their section; one at the top is written with its whole name, or without its section. */
function unknownSection(name: string, sections: readonly string[], file: string): ConfigError {
  if (isKey(name)) {
    const words = name.split('.');
    const written = words.reduceRight((inner, word) => `${word}: ${inner === '' ? '...' : `{ ${inner} }`}`, '');
    return new ConfigError(`${file}: "${name}" stands at the top; a key stands below its section: ${written}`);
  }
  const below = KEYS.filter(k => k.endsWith(`.${name}`));
  if (below.length > 0)
    return new ConfigError(
      `${file}: "${name}" stands at the top and has no section; did you mean ${below.join(', ')}?`,
    );
  return unknownKey(name, sections, file);
}

/** Whether a section has keys whose values are not shown. */
const holdsSecrets = (prefix: string): boolean => KEYS.some(key => key.startsWith(`${prefix}.`) && isSecret(key));

function flatten(value: unknown, file: string): Map<string, unknown> {
  const out = new Map<string, unknown>();
  if (value === null || value === undefined) return out;
  if (typeof value !== 'object' || Array.isArray(value))
    throw new ConfigError(`${file}: it must hold sections with keys below them, like http: { port: 8080 }`);
  const sections = [...new Set(KEYS.map(k => k.split('.')[0]!))];
  for (const [section, content] of Object.entries(value)) {
    if (!sections.includes(section)) throw unknownSection(section, sections, file);
    if (content === null) continue;
    if (typeof content !== 'object' || Array.isArray(content))
      throw new ConfigError(
        `${file}: ${section} ${shown(content, holdsSecrets(section))}; section "${section}" must be a mapping of keys, like ${section}: { ${namesIn(section)[0]}: ... }`,
      );
    flattenInto(out, content, section, file);
  }
  return out;
}

/** `tls: {cert: x}` in section `http` is `http.tls.cert`. */
function flattenInto(out: Map<string, unknown>, content: object, prefix: string, file: string): void {
  for (const [name, v] of Object.entries(content)) {
    const key = `${prefix}.${name}`;
    const isGroup = KEYS.some(k => k.startsWith(`${key}.`));
    // A group whose keys are all comments.
    if (isGroup && v === null) continue;
    if (isGroup && typeof v === 'object' && !Array.isArray(v)) flattenInto(out, v ?? {}, key, file);
    else if (isGroup)
      throw new ConfigError(
        `${file}: ${key} ${shown(v, holdsSecrets(key))}; "${key}" must be a mapping of keys, like ${name}: { ${namesIn(key)[0]}: ... }`,
      );
    else if (isKey(key)) out.set(key, v);
    else throw unknownKey(key, KEYS, file);
  }
}

/** A certificate is of no use without its key. */
function assertTlsIsWhole(values: Readonly<Record<string, unknown>>): void {
  const keys = ['http.tls.cert', 'http.tls.key'];
  const missing = keys.find(key => values[key] === '');
  const given = keys.find(key => values[key] !== '');
  if (missing !== undefined && given !== undefined)
    throw new ConfigError(`${missing} (${envNameOf(missing)}) is missing; ${given} needs it`);
}

function assertStoreIsWhole(values: Readonly<Record<string, unknown>>): void {
  if (values['s3.bucket'] === '') return;
  const missing = (['s3.access_key_id', 's3.secret_access_key'] as const).find(key => values[key] === '');
  if (missing !== undefined) throw new ConfigError(`${missing} (${envNameOf(missing)}) is missing; s3.bucket needs it`);
}

/** Where the file is no YAML, and why. The library repeats what stands there. */
function yamlProblem(file: string, error: unknown): ConfigError {
  const [first = ''] = messageOf(error).split('\n');
  if (/multiple documents/.test(first))
    return new ConfigError(`${file}: it holds several documents, divided by ---; keep one`);
  const at = error instanceof YAMLParseError ? error.linePos?.[0] : undefined;
  const place = at === undefined ? '' : `line ${at.line}, column ${at.col}: `;
  const what = `${file}: ${place}this is not YAML`;
  return new ConfigError(`${what}: ${first.replace(/(?: at line \d+, column \d+)?:?$/, '')}`, {
    outside: `${what}; ${CHECK_HINT}`,
  });
}

function readFile(file: string): Map<string, unknown> {
  let content: string;
  try {
    content = fs.readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`cannot read the configuration file ${file}: ${fileProblem(error)}`);
  }
  let value: unknown;
  try {
    value = parseYaml(content, { logLevel: 'error' });
  } catch (error) {
    throw yamlProblem(file, error);
  }
  return flatten(value, file);
}

/** What may stand behind the name of a key: the value is in a file then. */
const FILE_SUFFIX = '_FILE';

/** Does something with a file of the operator; what fails is a mistake in the configuration. */
function orConfigError<T>(where: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError(`${where}: ${messageOf(error)}`);
  }
}

function readEnvironment(env: Readonly<Record<string, string | undefined>>): Map<string, GivenValue> {
  const names = new Map<string, string>(KEYS.map(k => [envNameOf(k), k]));
  const out = new Map<string, GivenValue>();
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith('BOT_') || value === undefined || OTHER_ENV.has(name)) continue;
    const key = names.get(name);
    if (key !== undefined) {
      out.set(key, { name, value });
      continue;
    }
    const plain = name.endsWith(FILE_SUFFIX) ? name.slice(0, -FILE_SUFFIX.length) : name;
    const inFile = plain === name ? undefined : names.get(plain);
    const known = [...names.keys()].map(n => (plain === name ? n : `${n}${FILE_SUFFIX}`));
    if (inFile === undefined) throw unknownKey(name, known, 'environment');
    if (env[plain] !== undefined)
      throw new ConfigError(`environment: ${plain} and ${name} are both set; keep the one that counts`);
    out.set(inFile, { name, value: orConfigError(name, () => readValueFile(value)) });
  }
  return out;
}

/** Where systemd has put the credentials of the service. */
const CREDENTIALS = 'CREDENTIALS_DIRECTORY';

function readCredentialsOf(
  file: string | null,
  env: Readonly<Record<string, string | undefined>>,
): Map<string, GivenValue> {
  const directory = env[CREDENTIALS] ?? '';
  if (directory === '' && file !== null)
    return orConfigError('/etc/credstore', () =>
      readCredstore(file, KEYS, name => unknownKey(name, KEYS, 'credentials in /etc/credstore')),
    );
  if (directory === '') return new Map();
  return orConfigError(CREDENTIALS, () =>
    readCredentials(directory, KEYS, name => unknownKey(name, KEYS, `credentials in ${directory}`)),
  );
}

/** A body that may be sent must find room among those that are received. */
function assertBodiesFit(values: Readonly<Record<string, unknown>>): void {
  const keys = ['http.max_body', 'http.max_receiving_per_address', 'http.max_receiving'];
  for (const [k, key] of keys.slice(1).entries()) {
    const less = keys[k] ?? '';
    if (Number(values[less]) > Number(values[key]))
      throw new ConfigError(
        `${key} is ${values[key]}; it must be at least ${less} (${values[less]}): raise it, or lower ${less}`,
      );
  }
}

/**
 * The effective configuration: default < file < credentials of systemd < environment. A variable with `_FILE` behind
 * its name names a file that holds the value.
 *
 * @param file path of a YAML file, or null for none
 * @param env the environment
 * @throws ConfigError naming the key, where it was given and what would be right
 */
export function loadConfig(file: string | null, env: Readonly<Record<string, string | undefined>>): Config {
  const fromFile = file === null ? new Map<string, unknown>() : readFile(file);
  const fromCredentials = readCredentialsOf(file, env);
  const fromEnv = readEnvironment(env);
  const values: Record<string, unknown> = {};
  const sources: Record<string, ConfigSource> = {};
  for (const key of KEYS) {
    const given = fromEnv.get(key) ?? fromCredentials.get(key);
    const source: ConfigSource = fromEnv.has(key)
      ? 'env'
      : fromCredentials.has(key)
        ? 'credential'
        : fromFile.has(key)
          ? 'file'
          : 'default';
    const raw = given !== undefined ? given.value : fromFile.has(key) ? fromFile.get(key) : ROWS[key].default;
    const checked = (ROWS[key] as Row<unknown>).check.safeParse(raw);
    if (!checked.success) {
      const where = given !== undefined ? given.name : (file ?? 'default');
      const isWrong = (isHidden: boolean): string =>
        `${where}: ${key} ${valueProblem(checked.error, raw, isHidden)} (${ROWS[key].about})`;
      // In a section with secrets one of them may stand at the wrong key.
      const outside = isWrong(ROWS[key].secret === true || holdsSecrets(key.split('.')[0] ?? key));
      throw new ConfigError(isWrong(ROWS[key].secret === true), { outside });
    }
    values[key] = checked.data;
    sources[key] = source;
  }
  const publicUrl = values['http.public_url'];
  const pluginOrigin = values['plugins.origin'];
  if (typeof publicUrl === 'string' && typeof pluginOrigin === 'string' && publicUrl !== '' && pluginOrigin !== '')
    if (new PluginOrigins(pluginOrigin, () => []).pluginAt(new URL(publicUrl).host) !== null)
      throw new ConfigError(
        `plugins.origin (BOT_PLUGINS_ORIGIN) ${pluginOrigin} covers http.public_url ${publicUrl}: plugins need a separate name, like https://*.plugins.example.org for a service at https://example.org`,
      );
  if (values['university_sync.enabled'] === true && values['university_sync.base_url'] === '')
    throw new ConfigError(
      'university_sync.base_url (BOT_UNIVERSITY_SYNC_BASE_URL) is missing; university_sync.enabled needs it',
    );
  assertBodiesFit(values);
  assertTlsIsWhole(values);
  assertStoreIsWhole(values);
  return Object.freeze({
    values: Object.freeze(values) as Values,
    sources: Object.freeze(sources) as Record<ConfigKey, ConfigSource>,
    file,
    // Where systemd passes credentials, the store is its own.
    unread: (env[CREDENTIALS] ?? '') === '' ? credstoreHint(file) : '',
  });
}

/** Whether the value of a key is shown nowhere. */
export const isSecret = (key: ConfigKey): boolean => ROWS[key].secret === true;

/** The effective values with their source; secrets are hidden. For `config check`. */
export function describeConfig(
  config: Config,
): Array<{ key: ConfigKey; value: unknown; default: unknown; source: ConfigSource; env: string; about: string }> {
  return KEYS.map(key => ({
    key,
    value: ROWS[key].secret && config.values[key] !== '' ? '(hidden)' : config.values[key],
    default: ROWS[key].default,
    source: config.sources[key],
    env: envNameOf(key),
    about: ROWS[key].about,
  }));
}

/** The configuration as environment variables, for a child process: it then needs no file and sees the same values. */
export function configToEnv(config: Config): Record<string, string> {
  const env: Record<string, string> = {};
  for (const key of KEYS) {
    const value = config.values[key];
    if (config.sources[key] === 'default') continue;
    env[envNameOf(key)] = Array.isArray(value) ? value.join(',') : String(value);
  }
  return env;
}

/** A copy of a configuration with values that the supervisor finds out at the start. */
export function withValues(config: Config, changes: Partial<Values>): Config {
  const sources = { ...config.sources };
  for (const key of Object.keys(changes))
    if (isKey(key)) sources[key] = sources[key] === 'default' ? 'start' : sources[key];
  return Object.freeze({
    values: Object.freeze({ ...config.values, ...changes }),
    sources: Object.freeze(sources),
    file: config.file,
    unread: config.unread,
  });
}

/** Where the values come from, which `configToEnv` leaves out. */
export type ConfigOrigin = Pick<Config, 'sources' | 'file'>;

export const originOf = ({ file, sources }: Config): ConfigOrigin => ({ file, sources });

/** A `ConfigOrigin` that another release may have written. */
export const configOrigin = z.object({
  file: z.string().nullable(),
  sources: z.record(z.string(), z.enum(CONFIG_SOURCES)),
});

/**
 * The configuration that `configToEnv` and `originOf` have written down; without its origin all of it is of the environment. What only the
 * release knows that wrote it is left out.
 */
export function configFromEnv(env: Record<string, string>, origin?: z.infer<typeof configOrigin>): Config {
  const known = KEYS.map(envNameOf).filter(name => env[name] !== undefined);
  const config = loadConfig(null, Object.fromEntries(known.map(name => [name, env[name]])));
  if (origin === undefined) return config;
  const sources = { ...config.sources };
  for (const [key, source] of Object.entries(origin.sources)) if (isKey(key)) sources[key] = source;
  return Object.freeze({ ...config, file: origin.file, sources: Object.freeze(sources) });
}

/** Absolute path below the data directory. */
export function dataPath(config: Config, ...parts: string[]): string {
  return path.resolve(config.values['data.dir'], ...parts);
}

export const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || host.startsWith('127.');
const isEveryAddress = (host: string): boolean => ['0.0.0.0', '::'].includes(host);

/** An address of this machine others reach it at; its name where it has none. */
function ownAddress(): string {
  const all = Object.values(os.networkInterfaces()).flatMap(addresses => addresses ?? []);
  const outside = all.filter(a => !a.internal && !a.address.startsWith('fe80:'));
  return (outside.find(a => a.family === 'IPv4') ?? outside[0])?.address ?? os.hostname();
}

/**
 * Address users see: `http.public_url`, else made from host and port. A service that listens on every address of the
 * machine never names the loopback address, which leads other machines to themselves.
 *
 * @param port that is listened on
 */
export function publicBaseOf(config: Config, port: number): string {
  const v = config.values;
  if (v['http.public_url'] !== '') return v['http.public_url'].replace(/\/$/, '');
  const host = isEveryAddress(v['http.host']) ? ownAddress() : v['http.host'];
  return `${v['http.tls.cert'] === '' ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** What will be wrong without `http.public_url`; null where nothing is. */
export function publicUrlProblem(config: Config): string | null {
  const v = config.values;
  if (v['http.public_url'] !== '' || isLoopback(v['http.host'])) return null;
  const shown = publicBaseOf(config, v['http.port']);
  return `http.public_url (BOT_HTTP_PUBLIC_URL) is not set and the service listens on ${v['http.host']}: the setup link, mails, upload addresses and the way back from the identity provider name ${shown}; set it to the address users open`;
}

const isLoopbackName = (hostname: string): boolean =>
  /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);

/** Whether browsers may be asked to use https alone: not on loopback, where other programs have the same name. */
export function isHttpsOnly(base: string): boolean {
  const { hostname, protocol } = new URL(base);
  return protocol === 'https:' && !isLoopbackName(hostname);
}

/**
 * Whether browsers trust an address: they separate windows and name the origin of requests over https and on loopback
 * alone.
 */
export function isTrustworthy(base: string): boolean {
  const { hostname, protocol } = new URL(base);
  return protocol === 'https:' || isLoopbackName(hostname);
}
