import { FILES, NETWORK } from '../source-warnings.ts';

/** What programs in C use and a plugin does not have: functions, the headers that declare them, and what is right instead. */
const LACKING: ReadonlyArray<[functions: RegExp, headers: RegExp, advice: string]> = [
  [
    /^(socket|connect|bind|listen|accept|send|recv|sendto|recvfrom|getaddrinfo|gethostbyname)$/,
    /^(netdb|sys\/socket|netinet\/\w+|arpa\/inet)\.h$/,
    `${NETWORK}: use ph_http_request`,
  ],
  [
    /^(v?fork|exec[lv]\w*|popen|system|posix_spawnp?|wait|waitpid|kill)$/,
    /^(spawn|sys\/wait)\.h$/,
    'a plugin starts no programs',
  ],
  [/^(pthread|thrd|mtx|cnd|sem)_\w+$/, /^(pthread|threads|semaphore)\.h$/, 'a plugin has one thread'],
  [/^(signal|raise|sigaction|alarm)$/, /^signal\.h$/, 'a plugin gets no signals'],
  [/^(mmap|munmap|mprotect)$/, /^sys\/mman\.h$/, 'use malloc'],
  [/^(_?setjmp|_?longjmp)$/, /^setjmp\.h$/, 'return a ph_code instead'],
  [
    /^(tmpfile|tmpnam|mkstemp|mkdtemp)$/,
    /^sys\/(mount|statfs)\.h$/,
    `${FILES}: keep it in memory, or use ph_file_store`,
  ],
  [/^(clock|times|getrusage)$/, /^sys\/(times|resource)\.h$/, 'use clock_gettime with CLOCK_MONOTONIC'],
  [/^(getpid|getuid|gethostname|uname)$/, /^(pwd|grp|sys\/utsname)\.h$/, 'a plugin has no accounts and processes'],
];

const adviceFor = (kind: 0 | 1, name: string): string | null => LACKING.find(row => row[kind].test(name))?.[2] ?? null;

/** Why a function cannot be used, as a sentence; null for one that may only be missing. */
export function functionAdvice(name: string): string | null {
  const advice = adviceFor(0, name);
  return advice === null ? null : `${name} does not work in a plugin: ${advice}`;
}

function headerAdvice(header: string): string | null {
  const advice = adviceFor(1, header);
  return advice === null ? null : `<${header}> is of no use in a plugin: ${advice}`;
}

/** What the compiler says comes first: the name may be one of the author's own. */
const withAdvice = (said: string, advice: string | null): string => (advice === null ? said : `${said} (${advice})`);

/** Where the author includes a file of others. */
const INCLUDED = /^In file included from ([^/:][^:]*:\d+)[:,]/;
const IN_HEADER = /^(\/\S*\/[\w/]+\.h):\d+:\d+: (?:fatal )?error: (.*)$/;
const IMPLICIT = /error: (?:implicit declaration of|call to undeclared(?: library)?) function '(\w+)'/;
const NO_HEADER = /^(\S+?): (?:fatal )?error: '([\w/]+\.h)' file not found/;

/** A header by the name it is included by. */
const headerName = (file: string): string => file.replace(/^.*\/(?=(?:sys|netinet|arpa)\/)|^.*\/(?=\w+\.h$)/, '');

/** What the compiler says, a line each: about places of the author, with what is right where a plugin lacks something. */
export function diagnostics(text: string): string[] {
  let from: string | null = null;
  const lines: string[] = [];
  for (const line of text.split('\n')) {
    const [, included] = INCLUDED.exec(line) ?? [];
    if (included !== undefined) from = included;
    if (line === '' || /^(In file included from |\d+ (errors?|warnings?)\b.* generated\.$)/.test(line)) continue;
    if (line.includes(': note: expanded from ')) continue;
    const [, file, said = ''] = IN_HEADER.exec(line) ?? [];
    const [, name = ''] = IMPLICIT.exec(line) ?? [];
    const [, place = '', header = ''] = NO_HEADER.exec(line) ?? [];
    if (file !== undefined && from !== null)
      lines.push(`${from}: ${withAdvice(`error: <${headerName(file)}>: ${said}`, headerAdvice(headerName(file)))}`);
    else if (functionAdvice(name) !== null) lines.push(withAdvice(line, functionAdvice(name)));
    else if (headerAdvice(header) !== null)
      lines.push(withAdvice(`${place}: error: there is no <${header}>`, headerAdvice(header)));
    else lines.push(line);
    if (!line.startsWith('/')) from = null;
  }
  return lines;
}
