import { importRunJson } from '../../api/university/import-run.ts';
import { importsOf } from '../../app/university.ts';
import { messageOf, ServiceError, UsageError } from '../../base/errors.ts';
import { type Config, withValues } from '../../config/load.ts';
import { ENTITIES, type EntityType } from '../../university/entities.ts';
import type { ImportRun } from '../../university/import-log.ts';
import type { PullProgress } from '../../university/pull.ts';
import { jsonText } from '../print/json-text.ts';
import { actor, CommandError, withDatabase } from './admin-commands.ts';

type Screen = { isTTY?: boolean; write(text: string): unknown };

const BAR = 30;

/** One line of what is being done, `type [#####     ] 1200/3000`. */
export function progressLine(p: PullProgress): string {
  const name = p.type.padEnd(20);
  if (p.state === 'fetching') return `${name} fetching`;
  if (p.of === null || p.state === 'not_offered' || p.state === 'unchanged') return `${name} ${p.state}`;
  const filled = p.of === 0 ? BAR : Math.round((BAR * p.total) / p.of);
  const failed = p.failed > 0 ? `, ${p.failed} failed` : '';
  const state = p.state === 'running' ? '' : `  ${p.state}`;
  return `${name} [${'#'.repeat(filled)}${' '.repeat(BAR - filled)}] ${p.total}/${p.of}${failed}${state}`;
}

/** A terminal shows the line as it grows; elsewhere stands what each type has come to. */
function showProgress(screen: Screen): (p: PullProgress) => void {
  let shown = '';
  return p => {
    const line = progressLine(p);
    const isLast = p.state !== 'running' && p.state !== 'fetching';
    if (screen.isTTY === true) screen.write(`\r\u001b[K${line}${isLast ? '\n' : ''}`);
    else if (isLast && line !== shown) screen.write(`${line}\n`);
    shown = line;
  };
}

function summary(run: ImportRun): string {
  const lines = run.types
    .filter(t => t.problem !== null || t.failed > 0)
    .map(t => `${t.type}: ${t.problem ?? `${t.failed} of ${t.total} records failed`}`);
  const sum = (of: 'created' | 'updated' | 'deactivated' | 'failed'): number =>
    run.types.reduce((n, t) => n + t[of], 0);
  lines.push(
    `import ${run.id} ${run.state}: ${sum('created')} created, ${sum('updated')} updated, ${sum('deactivated')} made inactive, ${sum('failed')} failed`,
  );
  return lines.join('\n');
}

/**
 * `sync once`: one synchronization with the source, in this process (PullOnce, docs/university.md "Pulls"); the service need not run. What it means
 * for the graph store is delivered by the service.
 *
 * @param releaseBrake types that may lose any number of records this time
 * @param screen where progress is shown
 * @returns what to print, and how it went
 * @throws UsageError for a type there is none of, CommandError when nothing can be pulled
 */
export async function syncOnce(
  config: Config,
  releaseBrake: readonly string[],
  json: boolean,
  screen: Screen,
): Promise<{ state: ImportRun['state']; text: string }> {
  const known = new Map<string, EntityType>(ENTITIES.map(e => [e.type, e.type]));
  const types = releaseBrake.map(name => {
    const type = known.get(name);
    if (type === undefined)
      throw new UsageError(
        `--release-brake is ${JSON.stringify(name)}; it must be one of ${[...known.keys()].join(', ')}`,
      );
    return type;
  });
  const tell = (text: string): void => void screen.write(`[plugin-host] ${text}\n`);
  return await withDatabase(config, tell, async (db, url) => {
    const imports = importsOf({
      db,
      config: withValues(config, { 'database.url': url }),
      // The failures stand in the summary.
      log: { info() {}, warn() {} },
    });
    try {
      const by = actor();
      const onProgress = showProgress(screen);
      const { done } = await imports.beginPull({ name: by.name, actor: by }, { types }, { onProgress });
      const run = await done;
      return { state: run.state, text: json ? jsonText(importRunJson(run)) : summary(run) };
    } catch (error) {
      if (error instanceof ServiceError) throw new CommandError(messageOf(error), { cause: error });
      throw error;
    } finally {
      await imports.close();
    }
  });
}
