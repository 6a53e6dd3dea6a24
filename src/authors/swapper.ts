import fs from 'node:fs';
import path from 'node:path';
import { type FSWatcher, watch } from 'chokidar';
import { messageOf, OperatorError } from '../base/errors.ts';
import type { Manifest } from '../plugins/manifest.ts';
import {
  type BuiltModule,
  buildModule,
  findingLine,
  type ShownFinding,
  withoutTold,
} from '../projects/build-project.ts';
import { PROJECT_FILE, type Project, readProject } from '../projects/project.ts';
import { checkTypes, noChecker } from './check-types.ts';

/** A change of an editor is several events. */
const SETTLE_MS = 4;
const IGNORED = /(^|[/\\])(node_modules|\.git)([/\\]|$)|^(kit|build|target|\.plugin-host|test)([/\\]|$)/;

/** Where a built plugin is installed. */
export type Target = {
  /**
   * Installs it in the place of the one before.
   *
   * @returns what the gate of the upload says about it
   * @throws Error with what is wrong
   */
  install(built: BuiltModule): Promise<readonly ShownFinding[]>;
  /** What an earlier run has left installed, like `hello 1.0.0`; null for nothing. */
  readonly earlier?: string | null;
  /** Does what a change need not wait for, once the files have rested. @returns what was found only now */
  settle?(built: BuiltModule): Promise<readonly ShownFinding[]>;
};

/** Files that have not changed for this long rest. */
const REST_MS = 1500;

/** What a look at the disk gives; nothing for what has gone meanwhile, may not be read, or leads round to itself. */
function seen<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

/** What tells one state of the sources from another: each file with its size and the time of its last change. */
function stateOf(root: string): string {
  const found: string[] = [];
  const visit = (folder: string): void => {
    for (const entry of seen(() => fs.readdirSync(folder, { withFileTypes: true })) ?? []) {
      const file = path.join(folder, entry.name);
      if (IGNORED.test(path.relative(root, file))) continue;
      if (entry.isDirectory()) visit(file);
      const stat = seen(() => fs.statSync(file, { bigint: true }));
      if (stat?.isFile()) found.push(`${file} ${stat.ino} ${stat.size} ${stat.mtimeNs}`);
    }
  };
  visit(root);
  return found.sort().join('\n');
}

/** Builds and installs, one at a time; a change during it is taken up behind it. */
export class Swapper {
  readonly #project: Project;
  readonly #service: Target;
  readonly #say: (text: string) => void;
  #running: Promise<void> | null = null;
  #again = false;
  #installed: BuiltModule | null = null;
  #resting: NodeJS.Timeout | undefined;
  #changed: NodeJS.Timeout | undefined;
  #closed = false;
  #watcher: FSWatcher | null = null;
  /** The state of the files that was taken up last. */
  #taken = '';
  /** What the file of the project said when it was looked at last. */
  #told = '';
  readonly #isLive: () => void;
  manifest: Manifest | null = null;

  /** @param isLive called each time when `manifest` is that of what has been installed */
  constructor(project: Project, service: Target, say: (text: string) => void, isLive = (): void => {}) {
    this.#project = project;
    this.#service = service;
    this.#say = say;
    this.#isLive = isLive;
  }

  /** Takes up what the files hold now. */
  swap(): Promise<void> {
    if (this.#running !== null) {
      this.#again = true;
      return this.#running;
    }
    return this.#run(this.#swap());
  }

  /** A change that comes meanwhile is taken up behind it. */
  #run(work: Promise<void>): Promise<void> {
    this.#running = work.finally(() => {
      this.#running = null;
      if (!this.#again) return;
      this.#again = false;
      void this.swap();
    });
    return this.#running;
  }

  #settleLater(built: BuiltModule): void {
    clearTimeout(this.#resting);
    if (!this.#closed) this.#resting = setTimeout(() => this.#settle(built), REST_MS);
  }

  async #swap(): Promise<void> {
    const begun = performance.now();
    this.#taken = stateOf(this.#project.root);
    let failed = 'not built';
    try {
      const built = await buildModule(this.#project);
      failed = 'not installed';
      const installing = performance.now();
      const findings = await this.#service.install(built);
      const { warnings } = built;
      this.manifest = built.manifest;
      this.#installed = built;
      this.#settleLater(built);
      const times = `built in ${Math.round(installing - begun)} ms, installed in ${Math.round(performance.now() - installing)} ms`;
      this.#say(`${this.manifest.id} ${this.manifest.version} is live (${times})`);
      for (const line of [...warnings.map(w => `warning: ${w}`), ...withoutTold(findings, warnings).map(findingLine)])
        this.#say(`  ${line}`);
      this.#isLive();
    } catch (error) {
      this.#say(`${failed}${this.#goesOn()}:\n${messageOf(error)}`);
      if (!(error instanceof OperatorError)) this.#say(error instanceof Error ? (error.stack ?? '') : '');
    }
    // A type that does not fit stops no plugin; it is shown as soon as it is known.
    void checkTypes(this.#project).then(mistakes => {
      for (const line of mistakes) this.#say(`types: ${line}`);
    });
  }

  /** What answers although the present sources do not. */
  #goesOn(): string {
    if (this.manifest !== null) return '; the version before goes on';
    const { earlier = null } = this.#service;
    return earlier === null ? '' : `; ${earlier} goes on, which was installed before`;
  }

  /** Lets the target finish with what is installed. */
  #settle(built: BuiltModule): void {
    const { settle } = this.#service;
    if (settle === undefined || built !== this.#installed) return;
    // A build that runs now may fail, and then this version goes on.
    if (this.#running !== null) return this.#settleLater(built);
    const settled = settle(built).then(
      findings => {
        for (const finding of findings) this.#say(`  ${findingLine(finding)}`);
      },
      (error: unknown) => this.#say(`its start is not remembered: ${messageOf(error)}`),
    );
    void this.#run(settled);
  }

  /** Takes up each change of the files from now on. */
  async watch(): Promise<void> {
    const { root } = this.#project;
    for (const line of noChecker(this.#project)) this.#say(line);
    const watcher = watch(root, { ignoreInitial: true, ignored: file => IGNORED.test(path.relative(root, file)) });
    this.#watcher = watcher;
    await new Promise<void>(resolve => watcher.once('ready', resolve));
    watcher.on('all', () => this.#lookSoon());
    // The watcher drops a change that follows another one within 50 ms, and tells of each as it comes here.
    watcher.on('raw', () => this.#lookSoon());
    this.#lookSoon();
  }

  /**
   * Says once that the file of the project holds something else than at the start, but for the configuration. What is wrong with it,
   * the next installation says. Looked at when the files are at rest: while it is written it may be empty.
   */
  #lookAtProject(): void {
    const said = ({ devConfig: _, devUsers, ...rest }: Project): string => JSON.stringify([rest, ...devUsers]);
    const now = seen(() => readProject(this.#project.root));
    if (now === undefined || said(now) === this.#told) return;
    this.#told = said(now);
    if (this.#told === said(this.#project)) return;
    this.#say(
      `${PROJECT_FILE} has changed: its configuration is read at each change, all else at the start, so start this command again`,
    );
  }

  #lookSoon(): void {
    clearTimeout(this.#changed);
    if (this.#closed) return;
    this.#changed = setTimeout(() => {
      if (stateOf(this.#project.root) === this.#taken) return;
      this.#lookAtProject();
      void this.swap();
    }, SETTLE_MS);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#resting);
    clearTimeout(this.#changed);
    await this.#watcher?.close();
    // An installation under way needs the service.
    this.#again = false;
    await this.#running;
  }
}
