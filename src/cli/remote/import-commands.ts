import { idOf, type ListFlags, limitOf, members, page, short, when } from './operator-commands.ts';
import { ask, type Remote, shown } from './remote.ts';

/** Imports of the university's data, as a running service tells of them. */

/** `import list`. @returns what to print */
export async function listImports(r: Remote, flags: ListFlags): Promise<string> {
  const query = { limit: limitOf(flags) };
  const answer = await ask(() => r.host.GET('/api/admin/university/imports', { params: { query } }));
  const text = page(answer, [
    ['ID', i => String(i.id)],
    ['KIND', i => i.kind],
    ['STATE', i => i.state],
    ['STARTED', i => when(i.started_at)],
    ['FINISHED', i => when(i.finished_at)],
    ['BY', i => i.started_by],
    ['FAILED', i => String(i.types.reduce((n, t) => n + t.failed, 0))],
    ['PROBLEM', i => short(i.problem ?? i.types.find(t => t.problem !== null)?.problem)],
  ]);
  return shown(r.json, answer, text);
}

/** `import show`. @returns what to print: the import, and what was wrong with its records */
export async function showImport(r: Remote, id: string, flags: ListFlags): Promise<string> {
  const path = { id: idOf(id) };
  const query = { limit: limitOf(flags) };
  const answer = await ask(() => r.host.GET('/api/admin/university/imports/{id}', { params: { path } }));
  const errors = await ask(() => r.host.GET('/api/admin/university/imports/{id}/errors', { params: { path, query } }));
  const { types, ...rest } = answer;
  const text = [
    members(rest),
    '',
    page({ items: types }, [
      ['TYPE', t => t.type],
      ['STATE', t => t.state],
      ['RECORDS', t => String(t.total ?? '-')],
      ['NEW', t => String(t.created)],
      ['CHANGED', t => String(t.updated)],
      ['INACTIVE', t => String(t.deactivated)],
      ['FAILED', t => String(t.failed)],
      ['PROBLEM', t => short(t.problem)],
    ]),
    ...(errors.items.length === 0
      ? []
      : [
          '',
          page(errors, [
            ['TYPE', e => e.type],
            ['RECORD', e => String(e.index)],
            ['EXTERNAL ID', e => e.external_id ?? '-'],
            ['FIELD', e => e.field ?? '-'],
            ['MESSAGE', e => short(e.message, 100)],
          ]),
        ]),
  ];
  return shown(r.json, { ...answer, errors: errors.items }, text.join('\n'));
}
