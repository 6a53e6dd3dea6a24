import { OperatorError } from '../../base/errors.ts';
import { readPrincipal } from '../../base/principal.ts';
import { ask, type Options, type Remote } from './remote.ts';

/** Finds what people name where the API wants a number: keys and subscriptions by their names, users by external id or name. */

type Page<T> = { items: readonly T[]; next_cursor?: string | null };
type PageQuery = { limit: number; cursor?: string };

export const PAGE_MAX = 200;

/**
 * All items of a list, page after page.
 *
 * @param options what stands on the command line for words of a refusal
 * @param isEnough asked after each page whether those so far are all that are wanted
 */
export async function allOf<T>(
  load: (query: PageQuery) => Promise<{ data?: Page<T> }>,
  options: Options = {},
  isEnough: (items: readonly T[]) => boolean = () => false,
): Promise<T[]> {
  const items: T[] = [];
  for (let cursor: string | null | undefined = ''; cursor != null; ) {
    const query: PageQuery = cursor === '' ? { limit: PAGE_MAX } : { limit: PAGE_MAX, cursor };
    const page: Page<T> = await ask(() => load(query), options);
    items.push(...page.items);
    cursor = isEnough(items) ? null : page.next_cursor;
  }
  return items;
}

/** A text of digits, as an id; undefined for any other. */
const asId = (text: string): number | undefined => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined);

/** The id of the one item with this id or name. @throws OperatorError when there is none, or more than one */
function idOfName(what: string, name: string, items: ReadonlyArray<{ id: number; name: string }>): number {
  const id = asId(name);
  const found = items.filter(item => item.name === name || item.id === id);
  const [first] = found;
  if (first === undefined) throw new OperatorError(`there is no ${what} named ${JSON.stringify(name)}`);
  if (found.length > 1)
    throw new OperatorError(
      `${JSON.stringify(name)} names ${found.length} ${what}s: give the id of one, ${found.map(f => f.id).join(' or ')}`,
    );
  return first.id;
}

/** @param text an id, or the name of a service key @throws OperatorError */
export async function findServiceKeyId(r: Remote, text: string): Promise<number> {
  const keys = await allOf(query => r.host.GET('/api/admin/service-keys', { params: { query } }));
  return idOfName('service key', text, keys);
}

/** @param text an id, or the name of an administration key @throws OperatorError */
export async function findAdminKeyId(r: Remote, text: string): Promise<number> {
  return idOfName(
    'administration key',
    text,
    await allOf(query => r.host.GET('/api/admin/keys', { params: { query } })),
  );
}

/** @param text an id, or the name of an event subscription @throws OperatorError */
export async function findSubscriptionId(r: Remote, text: string): Promise<number> {
  return (
    asId(text) ??
    idOfName(
      'subscription',
      text,
      await allOf(query => r.host.GET('/api/admin/events/subscriptions', { params: { query } })),
    )
  );
}

type NamedUser = { id: number; external_id: string | null; display_name: string };

const shownUser = (u: NamedUser): string =>
  `user:${u.id} (${[u.display_name, u.external_id].filter(Boolean).join(', ') || 'no name'})`;

/**
 * The id of the one user that a text names: `user:42`, an external id, or a name as it is written. A number is an external id, as for
 * `person`: universities number people. `user:42` is asked for nowhere, because a key that may give roles need not be one that may list
 * users.
 *
 * @throws OperatorError when there is none, or more than one
 */
export async function findUserId(r: Remote, text: string): Promise<number> {
  const own = readPrincipal(text);
  if (own?.kind === 'user') return own.userId;
  const found: NamedUser[] = await allOf(
    query => r.host.GET('/api/admin/users', { params: { query: { ...query, search: text } } }),
    { 'GET /api/admin/users needs': 'a user named by anything but user:ID needs' },
  );
  const byId = found.filter(u => u.external_id === text);
  const exact = byId.length > 0 ? byId : found.filter(u => u.display_name === text);
  const [first] = exact;
  if (first !== undefined && exact.length === 1) return first.id;
  const shown = (exact.length > 0 ? exact : found).slice(0, 5).map(shownUser).join(', ');
  if (exact.length > 1)
    throw new OperatorError(`${JSON.stringify(text)} names more than one user: say which, ${shown}`);
  const numbered = asId(text) === undefined ? 'user:ID' : `user:${text}`;
  throw new OperatorError(
    `there is no user ${JSON.stringify(text)}: give an external id, a whole name, or ${numbered}${shown === '' ? '' : `; names with it: ${shown}`}`,
  );
}
