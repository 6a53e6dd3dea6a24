import fs from 'node:fs';
import path from 'node:path';
import { parseManifest } from '../src/plugins/manifest.ts';

/** What builds and will not work when the plugin runs: warnings for authors, by reading their sources. */

type Compiled = 'go' | 'rust' | 'c';
type Language = 'ts' | 'as' | Compiled;
/** A file of the author, with the name that warnings show. */
export type Source = { name: string; text: string };

/** Functions of the host by the permission they need, as TypeScript, Go and AssemblyScript call them, Rust, and C. */
const NEEDS: ReadonlyArray<[permission: string, requirement: string, camel: RegExp, rust: RegExp, c: RegExp]> = [
  ['kv', 'KV', /\.KV[A-Z]\w*\(/, /\.kv_\w+\(/, /\bph_kv_\w+\(/],
  ['sql', 'Database', /\.Database\(/, /\.database\(/, /\bph_sql_open\(/],
  [
    'network',
    'HTTP',
    /\.HTTP(?:Request|Get|Post)\(/,
    /\.http_(?:request|get|post)\(/,
    /\bph_http_(?:request|get|post)\(/,
  ],
  [
    'notify',
    'NotifyReq',
    /\.Notify(?:User|Chat|Students)\(/,
    /\.notify_(?:user|chat|students)\(/,
    /\bph_notify_(?:user|chat|students)\(/,
  ],
  ['events', 'EventsReq', /\.PublishEvent\(/, /\.publish_event\(/, /\bph_publish_event\(/],
  [
    'plugins:call',
    'PluginDep',
    /\.CallPlugin(?:Into|Raw)?\(/,
    /\.call_plugin(?:_into|_raw)?\(/,
    /\bph_call_plugin(?:_into|_raw)?\(/,
  ],
  [
    'file',
    'File',
    /\.File(?:Meta|Read|ReadAll|URL|Store|StoreWithTTL)\(/,
    /\.file_(?:meta|read|read_all|url|store|store_with_ttl)\(/,
    /\bph_file_(?:meta|read|read_all|url|store|store_with_ttl)\(/,
  ],
];
/** Where the names of requirements are not those of TypeScript. */
const REQUIREMENTS: Readonly<Record<'rust' | 'c', Readonly<Record<string, string>>>> = {
  rust: {
    ...{ KV: 'kv', Database: 'database', HTTP: 'http', NotifyReq: 'notify_req', EventsReq: 'events_req' },
    ...{ PluginDep: 'plugin_dep', File: 'file' },
  },
  c: {
    ...{ KV: 'PH_KV', Database: 'PH_DATABASE', HTTP: 'PH_HTTP', NotifyReq: 'PH_NOTIFY', EventsReq: 'PH_EVENTS' },
    ...{ PluginDep: 'PH_PLUGIN_DEP', File: 'PH_FILE' },
  },
};

/** Part of each warning about a call for files. */
export const FILES = 'a plugin has no file system';
/** Part of each warning about a call that connects to another host. */
export const NETWORK = 'a plugin has no network of its own';
/** What a language offers and a sandbox does not have: what is called, and what would be right. */
const LACKING: Readonly<Record<Compiled, ReadonlyArray<[used: RegExp, advice: string]>>> = {
  go: [
    [
      /\bos\.(?:ReadFile|WriteFile|Open|OpenFile|Create|CreateTemp|ReadDir|MkdirAll|Mkdir|MkdirTemp|Remove|RemoveAll|Rename)\(/g,
      `${FILES}: embed what it reads (//go:embed), or use ctx.FileRead and ctx.FileStore`,
    ],
    [/\bhttp\.(?:(?:Get|Post|PostForm|Head)\(|DefaultClient\b)/g, `${NETWORK}: use ctx.HTTPRequest`],
    [/\bhttp\.ListenAndServe(?:TLS)?\(/g, `${NETWORK}: declare an HTTP trigger`],
    [/\bnet\.(?:Dial(?:Timeout|TCP|UDP|IP|Unix)?|Lookup(?:Host|IP|Addr|CNAME|MX|NS|SRV|TXT))\(/g, NETWORK],
    [/\bexec\.Command(?:Context)?\(/g, 'a plugin starts no programs'],
    [/\b(?:net\.Dialer|http\.Client)\{(?![^}]*\bTransport:)/g, `${NETWORK}: use ctx.HTTPRequest`],
  ],
  rust: [
    [
      /\b(?:fs::(?:read|write|read_to_string|read_dir|create_dir|create_dir_all|remove_file|rename|copy)|File::(?:open|create))\(/g,
      `${FILES}: embed what it reads (include_bytes!), or use ctx.file_read and ctx.file_store`,
    ],
    [/\b(?:TcpStream::connect|TcpListener::bind|UdpSocket::bind)\(/g, `${NETWORK}: use ctx.http_request`],
    [/\bthread::spawn\(/g, 'a plugin has one thread'],
    [/\bCommand::new\(/g, 'a plugin starts no programs'],
  ],
  c: [
    [
      /\b(?:fopen|freopen|opendir)\(/g,
      `${FILES}: put what it reads into the source, or use ph_file_read and ph_file_store`,
    ],
  ],
};

/** Comments and strings become spaces, so that places stay as they are. */
const withoutWords = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\[\s\S]|[^"\\\n])*"|`[^`]*`|'(?:\\.|[^'\\\n])'/g, words =>
    words.replace(/[^\n]/g, ' '),
  );

/** `file:line:column` of a place in a text. */
function placeAt({ name, text }: Source, at: number): string {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return `${name}:${line}:${at - before.lastIndexOf('\n')}`;
}

const ENDINGS: Readonly<Record<Compiled, RegExp>> = { go: /\.go$/, rust: /\.rs$/, c: /\.[ch]$/ };
/** Folders that hold nothing of the author, or what is not part of the module. */
const OTHER_FOLDERS = new Set(['kit', 'build', 'target', 'test', 'tests', 'node_modules', 'frontend']);
/** Go leaves out tests, and files for other systems or with conditions of their own. */
const NOT_BUILT = /_test\.go$|_(linux|darwin|windows|js)(_\w+)?\.go$/;

function filesBelow(folder: string, below: string, ending: RegExp): string[] {
  return fs.readdirSync(path.join(folder, below), { withFileTypes: true }).flatMap(entry => {
    const name = path.join(below, entry.name);
    if (entry.isDirectory())
      return OTHER_FOLDERS.has(entry.name) || entry.name.startsWith('.') ? [] : filesBelow(folder, name, ending);
    return ending.test(entry.name) && !NOT_BUILT.test(entry.name) ? [name] : [];
  });
}

/** The author's files below the folder of a plugin. */
const readSources = (folder: string, language: Compiled): Source[] =>
  filesBelow(folder, '', ENDINGS[language])
    .sort()
    .map(name => ({ name, text: fs.readFileSync(path.join(folder, name), 'utf8') }))
    .filter(({ text }) => language !== 'go' || !/^\/\/go:build /m.test(text));

/** Calls that fail in the sandbox whatever the administrator permits, one line each. */
const lackingIn = (sources: readonly Source[], language: Compiled): string[] =>
  sources.flatMap(source => {
    const code = withoutWords(source.text);
    return LACKING[language].flatMap(([used, advice]) =>
      [...code.matchAll(used)].map(
        found =>
          `${placeAt(source, found.index)}: ${found[0].replace(/[({]$/, '')} does not work in a plugin: ${advice}`,
      ),
    );
  });

/** Go finds time zones in files of the machine, or in a package. */
const withoutZones = (sources: readonly Source[]): string[] =>
  sources.some(({ text }) => /^\s*(?:import\s+)?_\s+"time\/tzdata"/m.test(text))
    ? []
    : sources.flatMap(source => {
        const code = withoutWords(source.text);
        // Two names need no zones.
        const found = [...code.matchAll(/\btime\.LoadLocation\(/g)].find(
          ({ 0: call, index }) => !/^\s*"(?:UTC|Local|)"/.test(source.text.slice(index + call.length)),
        );
        const at = found?.index ?? -1;
        const advice = 'import _ "time/tzdata" brings the zones, which a plugin finds in no files';
        return at < 0 ? [] : [`${placeAt(source, at)}: time.LoadLocation fails: ${advice}`];
      });

/**
 * Calls that will be denied because the plugin does not require them: a line for each permission.
 *
 * @param kinds kinds of the requirements in the manifest
 */
export function missingRequirements(
  sources: readonly Source[],
  language: Language,
  kinds: ReadonlySet<string>,
): string[] {
  return NEEDS.filter(([permission]) => !kinds.has(permission)).flatMap(([, name, camel, rust, c]) => {
    const call = language === 'rust' ? rust : language === 'c' ? c : camel;
    const requirement = language === 'rust' || language === 'c' ? REQUIREMENTS[language][name] : name;
    for (const source of sources) {
      const at = withoutWords(source.text).search(call);
      if (at >= 0) return [`${placeAt(source, at)}: this call is denied without the requirement ${requirement}(...)`];
    }
    return [];
  });
}

/**
 * Whether warnings name the place of a call that lacks a permission.
 *
 * @param warnings those of `missingRequirements`, and others
 */
export const isPlaceKnown = (warnings: readonly string[], permission: string): boolean =>
  NEEDS.filter(([kind]) => kind === permission)
    .flatMap(([, name]) => [name, REQUIREMENTS.rust[name], REQUIREMENTS.c[name]])
    .some(name => warnings.some(w => w.endsWith(`the requirement ${name}(...)`)));

/**
 * All warnings about the sources of a plugin.
 *
 * @param manifest its manifest, as JSON
 */
export function sourceWarnings(folder: string, language: Compiled, manifest: string): string[] {
  const sources = readSources(folder, language);
  return [
    ...lackingIn(sources, language),
    ...(language === 'go' ? withoutZones(sources) : []),
    ...missingRequirements(sources, language, kindsOf(manifest)),
  ];
}

/** Kinds of the requirements in a manifest, as JSON; all kinds for one that is refused elsewhere. */
export function kindsOf(manifest: string): ReadonlySet<string> {
  const read = parseManifest(manifest);
  return new Set(read.ok ? read.manifest.requirements.map(r => r.kind) : NEEDS.map(([kind]) => kind));
}
