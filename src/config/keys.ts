import os from 'node:os';
import { z } from 'zod';
import { isAddressRange } from '../base/address-ranges.ts';
import { LIMITS } from '../base/limits.ts';
import { isOriginPattern } from './plugin-origins.ts';
import { parseTrustedKey } from './trusted-key.ts';
import {
  duration,
  flag,
  isDatabaseUrl,
  isIssuer,
  isNameServer,
  isPlainAddress,
  isWebAddress,
  list,
  listOf,
  numeric,
  whole,
} from './values.ts';

export type Row<T> = { default: T; check: z.ZodType<T>; secret?: boolean; about: string };

const row = <T>(check: z.ZodType<T>, value: T, about: string, secret = false): Row<T> => ({
  default: value,
  check,
  about,
  secret,
});

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const port = whole(0, 65_535);
const positive = whole(1);
const text = z.string();
/** Memory of the machine, or what the control group of this process may use where that is less (cgroups(7)). */
function memoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}
/** How long something is kept that is over. */
const KEPT = duration(3_600_000, 3650 * 86_400_000, 'from 1h to 3650d');
const ranges = listOf(isAddressRange, 'an address or a CIDR range like 10.1.2.0/24');
const AUDIT = 'must be a length of time from 90d to 36500d, or empty';
const secretKey = text.refine(
  value => value === '' || Buffer.from(value.trim(), 'base64').length === 32,
  'must be 32 bytes in base64; make one with: openssl rand -base64 32',
);
const PREFIX = text.regex(/^[a-z]{2,8}_$/, 'must be 2 to 8 small letters and _, like pha_');
const databaseUrl = text.refine(isDatabaseUrl, 'must be an address like postgresql://user:password@host:5432/name');

/**
 * One row per key: default, check, what it means. The environment name is BOT_<SECTION>_<KEY>
 * (docs/api.md "Names others rely on").
 */
export const ROWS = {
  'http.host': row(text.min(1), '127.0.0.1', 'address to listen on'),
  'http.port': row(port, 8080, 'port to listen on; 0 takes a free one'),
  'http.tls.cert': row(text, '', 'file of the certificate with its chain (PEM); set, the service speaks TLS itself'),
  'http.tls.key': row(text, '', 'file of its private key (PEM)'),
  'http.public_url': row(
    text.refine(
      isPlainAddress,
      'must be an address like https://plugins.example.org, without a name, a password, ? and #',
    ),
    '',
    'address users see, for links; empty: made from host and port',
  ),
  'http.max_body': row(positive, LIMITS.requestBodyBytesMax, 'largest body of a trigger request, bytes'),
  'http.max_module': row(positive, LIMITS.moduleBytesMax, 'largest uploaded module, bytes'),
  'http.max_frontend': row(positive, LIMITS.frontendPackedBytesMax, 'largest frontend of a plugin as a ZIP, bytes'),
  'http.max_upload': row(
    whole(1, LIMITS.s3CopyBytesMax),
    LIMITS.uploadBytesMax,
    'largest file a user uploads for a plugin, bytes',
  ),
  'http.max_receiving': row(
    positive,
    512 * MIB,
    'bytes of all request bodies this host receives at a moment, or keeps until their execution is over',
  ),
  'http.max_receiving_per_address': row(
    positive,
    128 * MIB,
    'of these, what one client address (a /64 of IPv6) may take',
  ),
  'http.body_timeout': row(duration(1000, 3_600_000, 'from 1s to 1h'), '30s', 'for one request body to arrive'),
  'http.min_body_rate': row(whole(0), 8192, 'bytes a second that a body must bring on average after its first 6 s'),
  'http.max_connections': row(positive, 10_000, 'connections that are open at a time'),
  'http.max_connections_per_address': row(
    positive,
    2000,
    'of these, those of one address (a /64 of IPv6) that is no trusted proxy',
  ),
  'http.trusted_proxies': row<string[]>(ranges, [], 'CIDR ranges whose X-Forwarded-For is believed'),
  'data.dir': row(text.min(1), './data', 'what the service keeps is below it'),
  'data.min_free_mb': row(
    whole(0),
    100,
    'free room of the disk below data.dir, in MB, under which /readyz answers 503; 0: never',
  ),
  'database.url': row(databaseUrl, '', 'PostgreSQL to use; empty: the embedded one', true),
  'database.owner_url': row(
    databaseUrl,
    '',
    'the same database as the role that owns its tables, for migrations alone; empty: database.url does both',
    true,
  ),
  'database.pool_size': row(whole(1, 200), 20, 'connections to the database'),
  'database.start_wait': row(
    duration(0, 3_600_000, 'from 0s to 1h'),
    '60s',
    'how long a start waits for a database of your own that does not answer yet',
  ),
  'files.user_quota': row(positive, 5 * GIB, 'bytes one user keeps with one plugin'),
  'files.user_files': row(positive, 1000, 'files one user keeps with one plugin'),
  'files.plugin_quota': row(positive, 100 * GIB, 'bytes of all files of one plugin'),
  'files.direct_links': row(
    flag,
    true,
    'whether plugins may give addresses at which anyone can read a file for 15 minutes',
  ),
  'files.upload_seconds': row(
    whole(1, LIMITS.orphanMsMin / 1000 - 60),
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
  's3.path_style': row(
    flag,
    false,
    'host/bucket/key instead of bucket.host/key, as most stores other than Amazon need',
  ),
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
  'admin.second_factor': row(
    z.enum(['optional', 'required']),
    'optional',
    'whether administrators who log in with a password need a passkey or an authenticator app as well',
  ),
  'admin.setup_token': row(text, '', 'fixes the setup token; empty: another at each start', true),
  'admin.api_key': row(
    text.refine(v => v === '' || /^[\x21-\x7e]{16,}$/.test(v), 'must have at least 16 printable characters, no spaces'),
    '',
    'opens the import of university data as "Authorization: Bearer <key>"; empty: administrators alone',
    true,
  ),
  'admin.user_token_prefix': row(PREFIX, 'pht_', 'begins every user token'),
  'admin.service_key_prefix': row(PREFIX, 'phk_', 'begins every service key'),
  'admin.key_prefix': row(PREFIX, 'pha_', 'begins every administration key'),
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
  'network.name_servers': row<string[]>(
    listOf(isNameServer, 'an address like 192.0.2.53 or 192.0.2.53:5353'),
    [],
    "servers that find the hosts plugins send requests to; empty: the system's",
  ),
  'events.private_ranges': row<string[]>(
    ranges,
    [],
    'ranges that are not public and event webhooks may reach all the same, like 10.1.2.0/24',
  ),
  'secrets.key': row(
    secretKey,
    '',
    '32 bytes in base64 that encrypt stored secrets; empty: <data.dir>/secrets.key',
    true,
  ),
  'plugins.origin': row(
    text.refine(isOriginPattern, 'must be an address like https://*.plugins.example.org'),
    '',
    'origins of plugins, one each: frontends and pages of triggers live there; empty: all share the origin of the service',
  ),
  'plugins.trusted_keys': row<string[]>(
    listOf(
      entry => parseTrustedKey(entry) !== undefined,
      'a name and a public key of minisign, like press-office=RWQ...',
    ),
    [],
    'authors whose signatures of modules are trusted: name=key each, the key as plugin-host plugin keygen prints it',
  ),
  'plugins.require_signature': row(
    flag,
    false,
    'whether only modules that one of plugins.trusted_keys has signed are installed',
  ),
  'plugins.keep_versions': row(
    positive,
    100,
    'how many versions of a plugin are kept that were installed before, and as many that never were',
  ),
  'plugins.keep_uninstalled': row(
    duration(0, 3650 * 86_400_000, 'from 0s to 3650d'),
    '30d',
    'how long modules and frontends of uninstalled plugins are kept',
  ),
  'retention.executions': row(KEPT, '14d', 'how long records of executions are kept'),
  'retention.activity': row(KEPT, '400d', 'how long numbers of executions by the hour are kept'),
  'retention.messages': row(KEPT, '30d', 'how long messages that were sent or given up are kept'),
  'retention.events': row(KEPT, '30d', 'how long events that were delivered or given up are kept'),
  'retention.imports': row(KEPT, '365d', 'how long the log of imports is kept'),
  'retention.audit': row(
    z.union([z.literal(''), duration(90 * 86_400_000, 36_500 * 86_400_000, 'from 90d to 36500d')], AUDIT),
    '',
    'how long entries of the audit log are kept; empty: for ever',
  ),
  'serving.processes': row(
    whole(1, LIMITS.servingProcessesMax),
    Math.min(LIMITS.servingProcessesMax, Math.max(1, Math.floor(os.availableParallelism() / 4))),
    'serving processes on the port; they share slots, memory and what is counted per host',
  ),
  'serving.drain_delay': row(
    duration(0, 60_000, 'from 0s to 60s'),
    '0s',
    'how long requests are still taken after a signal to stop, while `/readyz` says "draining", for a load balancer to notice',
  ),
  'serving.take_over': row(
    duration(0, 30_000, 'from 0s to 30s'),
    '6s',
    'how long a reload takes to lead clients to a new serving process, few at first; 0s: all at once, as soon as it answers',
  ),
  'execution.lanes': row(whole(1, LIMITS.lanesMax), 16, 'threads that run plugins'),
  'execution.memory': row(
    z.enum(['recycled', 'fresh']),
    'recycled',
    'fresh: never use the memory of an ended execution again',
  ),
  'execution.memory_budget_mb': row(
    whole(0),
    Math.floor(memoryBytes() / 2 / MIB),
    'resident memory of the serving processes above which the execution using the most memory is stopped; 0: none',
  ),
  'execution.timeout_ms': row(whole(1, LIMITS.executionMsMax), LIMITS.executionMsMax, 'deadline of an execution'),
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
    numeric(0, 100),
    20,
    'share of the active records of a type that one pull may make inactive; more, and nothing of the type is changed',
  ),
  'messengers.telegram_token': row(
    text.regex(/^(\d+:[\w-]{20,})?$/, 'must be like 123456:ABC-DEF..., as BotFather gives it'),
    '',
    'our bot at Telegram; empty: none',
    true,
  ),
  'messengers.telegram_secret': row(
    text.regex(/^[\w-]{0,256}$/, 'must be letters, digits, _ and -'),
    '',
    'secret_token that was given to setWebhook; without one no webhook is taken',
    true,
  ),
  'messengers.telegram_mode': row(
    z.enum(['webhook', 'polling']),
    'webhook',
    'polling: asks for updates, for development without an address of its own',
  ),
  'messengers.telegram_api_url': row(
    text.refine(isPlainAddress, 'must be an address like https://api.telegram.org'),
    'https://api.telegram.org',
    'where the Bot API is',
  ),
  'messengers.telegram_per_second': row(whole(1, 1000), 25, 'messages to Telegram in a second, all chats together'),
  'messengers.vk_token': row(
    text.regex(/^[\w.-]*$/, 'must be an access token'),
    '',
    'our community at VK; empty: none',
    true,
  ),
  'messengers.vk_group_id': row(text.regex(/^\d*$/, 'must be a number'), '', 'number of the community'),
  'messengers.vk_secret': row(
    text.regex(/^\w{0,50}$/, 'must be letters and digits, 50 at most'),
    '',
    'secret key of the Callback API; without one no callback is taken',
    true,
  ),
  'messengers.vk_confirmation': row(
    text.regex(/^\w{0,50}$/, 'must be a word'),
    '',
    'what VK wants to hear to confirm our address',
  ),
  'messengers.vk_mode': row(z.enum(['webhook', 'polling']), 'webhook', 'polling: Bots Long Poll API, for development'),
  'messengers.vk_api_url': row(
    text.refine(isPlainAddress, 'must be an address like https://api.vk.com'),
    'https://api.vk.com',
    'where the API is',
  ),
  'messengers.vk_per_second': row(whole(1, 1000), 18, 'calls to VK in a second'),
  'messengers.private_ranges': row<string[]>(
    ranges,
    [],
    'ranges that are not public and may be reached for messengers all the same; a literal address in an api_url needs none',
  ),
  'metrics.host': row(text.min(1), '127.0.0.1', 'address on which metrics are served'),
  'metrics.port': row(port, 0, 'port on which metrics are served at `/metrics`, for Prometheus; 0: none'),
  'metrics.token': row(
    text,
    '',
    'secret that Prometheus sends as bearer token; empty: every client that reaches the port reads',
    true,
  ),
  'tracing.endpoint': row(
    text.refine(isPlainAddress, 'must be an address like http://127.0.0.1:4318'),
    '',
    'receiver of traces (OpenTelemetry, OTLP over HTTP); spans go to `/v1/traces` below it; empty: none are made',
  ),
  'tracing.ratio': row(
    numeric(0, 1),
    1,
    'share of the traces that begin here and are sent; of others those of `tracing.trust` decide with `traceparent`',
  ),
  'tracing.trust': row<string[]>(
    ranges,
    [],
    'addresses (of a gateway) whose `traceparent` says which trace a request belongs to and whether it is sent',
  ),
  'log.level': row(
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    'info',
    'least severe log line that is written',
  ),
  'log.format': row(
    z.enum(['json', 'pretty']),
    'json',
    'how log lines are written: a JSON object each, or for people to read',
  ),
  'log.plugins': row(flag, false, 'whether lines plugins log stand in the log, with plugin, trigger and request id'),
} as const;
