import { spawn } from 'node:child_process';

/** Commands that a page shows, with the output it shows for them. */
export type Step =
  | { kind: 'shell'; commands: string; shown: string | null }
  /** What the page says to save, and under which name. */
  | { kind: 'file'; name: string; content: string }
  /** Ctrl-C in the terminal of the service. */
  | { kind: 'interrupt'; shown: string };

type Block = { language: string; text: string; before: string };

function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  let end = 0;
  for (const m of page.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)) {
    blocks.push({ language: m[1] ?? '', text: m[2] ?? '', before: page.slice(end, m.index) });
    end = m.index + m[0].length;
  }
  return blocks;
}

/**
 * What a reader of a page does, in order: runs each `sh` block, whose output is the `text` or `json` block right behind it, and saves each
 * `ts` block under the name that is said before it, or else anywhere on the page (``Save this as `x.ts` ``). A `console` block stands at the top to show what the page leads to,
 * and is done last.
 */
export function stepsOf(page: string): Step[] {
  const blocks = blocksOf(page);
  const steps: Step[] = [];
  const last: Step[] = [];
  for (const [k, { before, language, text }] of blocks.entries()) {
    const next = blocks[k + 1];
    const output = next?.before.trim() === '' && ['text', 'json'].includes(next.language) ? next.text : null;
    if (language === 'sh') steps.push({ kind: 'shell', commands: text, shown: output });
    if (language === 'console') {
      const [command = '', ...lines] = text.split('\n');
      last.push({ kind: 'shell', commands: command.replace(/^\$ /, ''), shown: lines.join('\n') });
    }
    if (language === 'text' && /Press Ctrl-C[^\n]*\n[^\n]*\n+$/.test(before))
      steps.push({ kind: 'interrupt', shown: text });
    if (language === 'ts') {
      const named = /[Ss]ave\s(?:this|it)\sas\s`([\w./-]+\.ts)`/;
      const name = (named.exec(before) ?? named.exec(page))?.[1];
      if (name === undefined) throw new Error(`no name for the file that begins with ${text.split('\n')[0]}`);
      steps.push({ kind: 'file', name, content: text });
    }
  }
  return [...steps, ...last];
}

/** What a page shows as a pattern: `...` stands for anything, and where lines break does not matter. */
export function patternOf(shown: string): RegExp {
  const parts = shown
    .trim()
    .split('...')
    .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\s+/g, '\\s*'));
  return new RegExp(`^\\s*${parts.join('[\\s\\S]*?')}\\s*$`);
}

export type Shell = {
  /** Runs a block. @returns what it wrote to standard output @throws Error when a command of it fails */
  run(commands: string): Promise<string>;
  end(): void;
};

/** The terminal a reader has open: blocks run one after the other, and know the variables of those before. */
export function openShell(folder: string, env: NodeJS.ProcessEnv): Shell {
  const child = spawn('sh', ['-e'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'pipe'] });
  let out = '';
  let errors = '';
  let look = (): void => {};
  child.stdout.on('data', (c: Buffer) => {
    out += c.toString();
    look();
  });
  child.stderr.on('data', (c: Buffer) => (errors += c.toString()));
  // A shell that has ended takes no further block; `close` tells.
  child.stdin.on('error', () => {});
  child.once('close', () => look());
  let count = 0;
  return {
    run(commands) {
      const mark = `-- block ${++count} is over --\n`;
      out = '';
      errors = '';
      child.stdin.write(`${commands}\nprintf '%s' '${mark}'\n`);
      return new Promise((resolve, reject) => {
        look = () => {
          if (out.endsWith(mark)) resolve(out.slice(0, -mark.length));
          else if (child.exitCode !== null) reject(new Error(`a command fails in\n${commands}\n${out}${errors}`));
        };
        look();
      });
    },
    end: () => void child.stdin.end(),
  };
}

export type Terminal = {
  /** What stands on the screen, without colours. */
  screen(): string;
  until(text: RegExp): Promise<RegExpMatchArray>;
  /** Presses Ctrl-C. @returns once the command has ended, its exit code */
  interrupt(): Promise<number | null>;
  kill(): void;
};

/** Runs a command on a terminal of its own, as a reader would: `script` of util-linux makes one. */
export function openTerminal(command: string, folder: string, env: NodeJS.ProcessEnv): Terminal {
  // Ctrl-C also reaches a shell that waits for the command, and it would end with 130 whatever the command says.
  const child = spawn('script', ['-qefc', `exec ${command}`, '/dev/null'], {
    cwd: folder,
    // The wheel that npm turns while it waits is not what a page shows.
    env: { ...env, SHELL: '/bin/sh', npm_config_progress: 'false' },
    stdio: 'pipe',
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (c: Buffer) => (text += c.toString()));
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  let failed: Error | null = null;
  child.once('error', error => {
    failed = new Error(`a terminal needs the command script of util-linux: ${error.message}`);
  });
  const screen = (): string => text.replace(/\r|\x1b\[[\d;]*[A-Za-z]/g, '');
  return {
    screen,
    async until(pattern) {
      for (const end = Date.now() + 90_000; Date.now() < end && child.exitCode === null; ) {
        const found = pattern.exec(screen());
        if (found !== null) return found;
        if (failed !== null) throw failed;
        await new Promise(resolve => setTimeout(resolve, 50));
      }
      throw new Error(`no ${pattern} on the screen:\n${screen()}`);
    },
    interrupt() {
      child.stdin.write('\x03');
      return ended;
    },
    // Its terminal hangs up, which ends the command.
    kill: () => void child.kill(),
  };
}
