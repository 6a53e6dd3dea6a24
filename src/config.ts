import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { closest } from 'fastest-levenshtein';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { duration, isIssuer, isPlainAddress, isWebAddress } from './config-values.ts';
import { messageOf } from './errors.ts';
import { LIMITS } from './limits.ts';

/** A mistake in the configuration: one line that says where it is and what would be right. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

type Row<T> = { default: T; check: z.ZodType<T>; secret?: boolean; about: string };

const row = <T>(check: z.ZodType<T>, value: T, about: string, secret = false): Row<T> => ({
  default: value,
  check,
  about,
  secret,
});

const GIB = 1024 ** 3;
const port = z.coerce.number().int().min(0).max(65_535);
const positive = z.coerce.number().int().min(1);
const text = z.string();
const list = z.union([
  z.array(z.string()),
  z.string().transform(s =>
    s
      .split(',')
      .map(p => p.trim())
      .filter(p => p !== ''),
  ),
]);

const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform(word => word === 'true')]);

/** One row per key: default, check, what it means. The environment name is BOT_<SECTION>_<KEY> (decisions.md 1b). */
const ROWS = {
  'http.host': row(text.min(1), '127.0.0.1', 'address to listen on'),
  'http.port': row(port, 8080, 'port to listen on; 0 takes a free one'),
  'http.public_url': row(
    text.refine(isWebAddress, 'must be an address like https://plugins.example.org'),
    '',
    'address users see, for links; empty: made from host and port',
  ),
  'http.max_body': row(positive, LIMITS.requestBodyBytesMax, 'largest body of a trigger request, bytes'),
  'http.max_module': row(positive, LIMITS.moduleBytesMax, 'largest uploaded module, bytes'),
  'http.max_frontend': row(positive, LIMITS.frontendPackedBytesMax, 'largest frontend of a plugin as a ZIP, bytes'),
  'http.max_upload': row(
    positive.max(LIMITS.s3CopyBytesMax),
    LIMITS.uploadBytesMax,
    'largest file a user uploads for a plugin, bytes',
  ),
  'http.trusted_proxies': row<string[]>(list, [], 'CIDR ranges whose X-Forwarded-For is believed'),
  'data.dir': row(text.min(1), './data', 'everything the service writes is below it'),
  'database.url': row(text, '', 'PostgreSQL to use; empty: the embedded one', true),
  'database.pool_size': row(positive.max(200), 20, 'connections to the database'),
  'files.user_quota': row(positive, 5 * GIB, 'bytes one user keeps with one plugin'),
  'files.user_files': row(positive, 1000, 'files one user keeps with one plugin'),
  'files.plugin_quota': row(positive, 100 * GIB, 'bytes of all files of one plugin'),
  'files.direct_links': row(
    flag,
    true,
    'whether plugins may give addresses at which anybody reads a file for 15 minutes',
  ),
  'files.upload_seconds': row(
    positive.max(LIMITS.orphanMsMin / 1000 - 60),
    LIMITS.uploadSeconds,
    'how long an upload may take from its announcement to its completion',
  ),
  's3.bucket': row(text, '', 'bucket of an S3-compatible store that holds files; empty: local disk'),
  's3.endpoint': row(
    text.refine(isWebAddress, 'must be an address like https://s3.example.org'),
    '',
    "address of the store; empty: Amazon's",
  ),
  's3.public_endpoint': row(
    text.refine(isWebAddress, 'must be an address like https://s3.example.org'),
    '',
    'address browsers reach it at; empty: the same',
  ),
  's3.region': row(text.min(1), 'us-east-1', 'region of the bucket'),
  's3.access_key_id': row(text, '', 'our name at the store'),
  's3.secret_access_key': row(text, '', 'our secret at the store', true),
  's3.path_style': row(flag, false, 'host/bucket/key instead of bucket.host/key, as most stores beside Amazon want'),
  's3.prefix': row(text.regex(/^([\w.-]+\/)*$/, 'must be like plugins/ or empty'), '', 'what our keys begin with'),
  'spicedb.endpoint': row(
    text.refine(v => v === '' || /^(unix:\/.+|[^\s/:]+:\d+|\[[0-9a-f:]+\]:\d+)$/i.test(v), 'must be host:port'),
    '',
    'SpiceDB that holds the relationship graph; empty: the embedded one',
  ),
  'spicedb.token': row(text, '', 'its preshared key', true),
  'spicedb.tls': row(flag, true, 'whether the way there is encrypted; false on a trusted network alone'),
  'spicedb.ca_file': row(
    text,
    '',
    "PEM file of the authority that signed the store's certificate; empty: those Node knows",
  ),
  'spicedb.recycle_mb': row(
    positive,
    1024,
    'memory at which the embedded SpiceDB, which never gives any back, is replaced by a new one',
  ),
  'admin.setup': row(
    z.enum(['token', 'loopback', 'open']),
    'token',
    'who may use the admin API while no administrator exists',
  ),
  'admin.setup_token': row(text, '', 'fixes the setup token; empty: made at first start', true),
  'admin.api_key': row(
    text.refine(v => v === '' || /^[\x21-\x7e]{16,}$/.test(v), 'must have at least 16 printable characters, no spaces'),
    '',
    'opens the import of university data as "Authorization: Bearer <key>"; empty: administrators alone',
    true,
  ),
  'admin.user_token_prefix': row(text.regex(/^[a-z]{2,8}_$/), 'pht_', 'begins every user token'),
  'admin.service_key_prefix': row(text.regex(/^[a-z]{2,8}_$/), 'phk_', 'begins every service key'),
  'idp.issuer': row(
    text.refine(isIssuer, 'must be an https address, or http on a loopback address'),
    '',
    'OpenID Connect provider users log in with; empty: none',
  ),
  'idp.client_id': row(text, '', 'our name at the provider'),
  'idp.client_secret': row(text, '', 'our secret at the provider; empty for a public client', true),
  'idp.scopes': row<string[]>(list, ['openid', 'profile', 'email'], 'what is asked of the provider'),
  'smtp.host': row(text, '', 'server that takes mail; empty: mail is written to <data.dir>/mail/*.eml'),
  'smtp.port': row(port, 587, 'port of it; 465 is TLS from the start, others switch to it'),
  'smtp.username': row(text, '', 'login at it; empty: none'),
  'smtp.password': row(text, '', 'password at it', true),
  'smtp.from': row(text.min(1), 'Plugin host <plugin-host@localhost>', 'sender of mail'),
  'secrets.key': row(text, '', '32 bytes in base64 that encrypt stored secrets; empty: <data.dir>/secrets.key', true),
  'execution.lanes': row(positive.max(LIMITS.lanesMax), 16, 'threads that run plugins'),
  'execution.memory': row(
    z.enum(['recycled', 'fresh']),
    'recycled',
    'fresh: never use the memory of an ended execution again',
  ),
  'execution.memory_budget_mb': row(
    z.coerce.number().int().min(0),
    Math.floor(os.totalmem() / 2 / 1024 / 1024),
    'resident memory of the serving process above which the greatest eater is ended; 0: none',
  ),
  'execution.timeout_ms': row(positive.max(LIMITS.executionMsMax), LIMITS.executionMsMax, 'deadline of an execution'),
  'university_sync.enabled': row(flag, false, 'whether university data are pulled in the background'),
  'university_sync.interval': row(duration(1000, 7 * 86_400_000, 'from 1s to 7d'), '15m', 'from one pull to the next'),
  'university_sync.base_url': row(
    text.refine(
      isPlainAddress,
      'must be an address like https://campus.example.org/api, without a name, a password, ? and #',
    ),
    '',
    'source of university data',
  ),
  'university_sync.token': row(
    text.regex(/^[\x21-\x7e]*$/, 'must be printable characters, no spaces'),
    '',
    'our credential at the source',
    true,
  ),
  'university_sync.page_timeout': row(
    duration(10, 3_600_000, 'from 10ms to 1h'),
    '60s',
    'for one page of the source, to its last byte',
  ),
  'university_sync.retry_wait': row(
    duration(1, 600_000, 'from 1ms to 10m'),
    '1s',
    'before a page is asked for again; twice as long each time',
  ),
  'university_sync.brake_percent': row(
    z.coerce.number().min(0).max(100),
    20,
    'share of the active records of a type that one pull may make inactive; more, and nothing of the type is changed',
  ),
  'log.level': row(
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    'info',
    'least severe log line that is written',
  ),
} as const;

export type ConfigKey = keyof typeof ROWS;
type Values = { readonly [K in ConfigKey]: (typeof ROWS)[K] extends Row<infer T> ? T : never };

export type ConfigSource = 'default' | 'file' | 'env';
export type Config = {
  readonly values: Values;
  readonly sources: Readonly<Record<ConfigKey, ConfigSource>>;
  readonly file: string | null;
};

const KEYS = Object.keys(ROWS) as ConfigKey[];

/** Environment name of a key: `http.max_body` -> `BOT_HTTP_MAX_BODY`. */
export function envNameOf(key: string): string {
  return `BOT_${key.replaceAll('.', '_').toUpperCase()}`;
}

const isKey = (key: string): key is ConfigKey => Object.hasOwn(ROWS, key);

/** Names that stand in the environment but are no keys: the file itself. */
const OTHER_ENV = new Set(['BOT_CONFIG']);

function unknownKey(key: string, known: readonly string[], where: string): ConfigError {
  return new ConfigError(`${where}: unknown key "${key}"; did you mean "${closest(key, known)}"?`);
}

function flatten(value: unknown, file: string): Map<string, unknown> {
  const out = new Map<string, unknown>();
  if (value === null || value === undefined) return out;
  if (typeof value !== 'object' || Array.isArray(value))
    throw new ConfigError(`${file}: must be a mapping of sections`);
  const sections = [...new Set(KEYS.map(k => k.split('.')[0]!))];
  for (const [section, content] of Object.entries(value)) {
    if (!sections.includes(section)) throw unknownKey(section, sections, file);
    if (content === null) continue;
    if (typeof content !== 'object' || Array.isArray(content))
      throw new ConfigError(`${file}: section "${section}" must be a mapping`);
    for (const [name, v] of Object.entries(content)) {
      const key = `${section}.${name}`;
      if (!isKey(key)) throw unknownKey(key, KEYS, file);
      out.set(key, v);
    }
  }
  return out;
}

function readFile(file: string): Map<string, unknown> {
  let content: string;
  try {
    content = fs.readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`cannot read the configuration file ${file}: ${messageOf(error)}`);
  }
  let value: unknown;
  try {
    value = parseYaml(content);
  } catch (error) {
    throw new ConfigError(`${file}: ${messageOf(error).split('\n')[0]}`);
  }
  return flatten(value, file);
}

function readEnvironment(
  env: Readonly<Record<string, string | undefined>>,
): Map<string, { name: string; value: string }> {
  const names = new Map<string, string>(KEYS.map(k => [envNameOf(k), k]));
  const out = new Map<string, { name: string; value: string }>();
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith('BOT_') || value === undefined || OTHER_ENV.has(name)) continue;
    const key = names.get(name);
    if (key === undefined) throw unknownKey(name, [...names.keys()], 'environment');
    out.set(key, { name, value });
  }
  return out;
}

/**
 * The effective configuration: default < file < environment.
 *
 * @param file path of a YAML file, or null for none
 * @param env the environment
 * @throws ConfigError naming the key, where it was given and what would be right
 */
export function loadConfig(file: string | null, env: Readonly<Record<string, string | undefined>>): Config {
  const fromFile = file === null ? new Map<string, unknown>() : readFile(file);
  const fromEnv = readEnvironment(env);
  const values: Record<string, unknown> = {};
  const sources: Record<string, ConfigSource> = {};
  for (const key of KEYS) {
    const given = fromEnv.get(key);
    const source: ConfigSource = given !== undefined ? 'env' : fromFile.has(key) ? 'file' : 'default';
    const raw = given !== undefined ? given.value : fromFile.has(key) ? fromFile.get(key) : ROWS[key].default;
    const checked = (ROWS[key] as Row<unknown>).check.safeParse(raw);
    if (!checked.success) {
      const where = given !== undefined ? given.name : (file ?? 'default');
      const shown = ROWS[key].secret ? '(hidden)' : JSON.stringify(raw);
      throw new ConfigError(
        `${where}: ${key} is ${shown}: ${checked.error.issues[0]?.message ?? 'invalid'} (${ROWS[key].about})`,
      );
    }
    values[key] = checked.data;
    sources[key] = source;
  }
  if (values['university_sync.enabled'] === true && values['university_sync.base_url'] === '')
    throw new ConfigError(
      'university_sync.base_url (BOT_UNIVERSITY_SYNC_BASE_URL) is missing; university_sync.enabled needs it',
    );
  return Object.freeze({
    values: Object.freeze(values) as Values,
    sources: Object.freeze(sources) as Record<ConfigKey, ConfigSource>,
    file,
  });
}

/** The effective values with their source; secrets are hidden. For `config check`. */
export function describeConfig(
  config: Config,
): Array<{ key: string; value: unknown; source: ConfigSource; env: string; about: string }> {
  return KEYS.map(key => ({
    key,
    value: ROWS[key].secret && config.values[key] !== '' ? '(hidden)' : config.values[key],
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
    if (config.sources[key] === 'default' && value === ROWS[key].default) continue;
    env[envNameOf(key)] = Array.isArray(value) ? value.join(',') : String(value);
  }
  return env;
}

/** The same configuration with some values set, for what the supervisor finds out at start. */
export function withValues(config: Config, changes: Partial<Values>): Config {
  const sources = { ...config.sources };
  for (const key of Object.keys(changes))
    if (isKey(key)) sources[key] = sources[key] === 'default' ? 'env' : sources[key];
  return Object.freeze({
    values: Object.freeze({ ...config.values, ...changes }),
    sources: Object.freeze(sources),
    file: config.file,
  });
}

/** Absolute path below the data directory. */
export function dataPath(config: Config, ...parts: string[]): string {
  return path.resolve(config.values['data.dir'], ...parts);
}

/**
 * Address users see.
 *
 * @param port that is listened on
 */
export function publicBaseOf(config: Config, port: number): string {
  const v = config.values;
  if (v['http.public_url'] !== '') return v['http.public_url'].replace(/\/$/, '');
  const host = ['0.0.0.0', '::'].includes(v['http.host']) ? '127.0.0.1' : v['http.host'];
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
