/** A crash that Go's runtime has written before it trapped: of a goroutine, or one that nothing can recover from. */
const CRASH = /^(?:panic|fatal error): /;
const GOROUTINE = /^goroutine \d+ .*\[/;
const CALL = /^(\S+)\([^()]*\)$/;
const PLACE = /^\s*(\S+\.go):(\d+)/;
const SHOWN_MAX = 8;
/** Lines of a trace have names of functions and files; a plugin may write anything that looks like one. */
const LINE_CHARS_MAX = 400;
const LINES_MAX = 400;

type Frame = { name: string; file: string; line: string };

function framesIn(lines: readonly string[]): Frame[] {
  return lines.flatMap((line, k) => {
    const [, name] = CALL.exec(line) ?? [];
    const [, file, at] = PLACE.exec(lines[k + 1] ?? '') ?? [];
    return name === undefined || file === undefined || at === undefined ? [] : [{ name, file, line: at }];
  });
}

const folderOf = (file: string): string => file.slice(0, file.lastIndexOf('/') + 1);

/**
 * The crash that a plugin in Go has written to its log, with the author's functions, files and lines.
 *
 * @param lines what the execution has logged
 * @returns null when it has written of none
 */
export function crashText(lines: readonly string[]): string | null {
  const at = lines.findLastIndex(line => CRASH.test(line));
  if (at < 0) return null;
  const trace = lines.slice(at, at + LINES_MAX).map(line => line.slice(0, LINE_CHARS_MAX));
  // A plugin in any language may log a line that begins like that.
  if (!trace.some(line => GOROUTINE.test(line))) return null;
  const frames = framesIn(trace);
  // Built with -trimpath, the author's files begin with the path of the module, which has the functions of `main`.
  const main = frames.find(f => f.name.startsWith('main.'));
  const own = main === undefined ? [] : frames.filter(f => f.file.startsWith(folderOf(main.file)));
  return [trace[0], ...own.slice(0, SHOWN_MAX).map(f => `    at ${f.name} (${f.file}:${f.line})`)].join('\n');
}
