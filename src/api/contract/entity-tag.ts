import { createHash } from 'node:crypto';
import { ServiceError } from '../../base/errors.ts';
import type { Reply, Request } from '../../http/message.ts';

/**
 * Entity tags of what administrators change (docs/api.md "Changing what was read"; RFC 9110 sections 8.8.3 and 13.1.1). A tag has a part for
 * each member, so that the refusal of an outdated change can name the members that were changed.
 */

/** What a tag stands for, by the names of the API. The order of the names is part of the tag. */
export type TaggedState = Readonly<Record<string, unknown>>;

/** Characters of the hash of one member: 48 bits. */
const PART_CHARS = 8;

const partsOf = (state: TaggedState): string[] =>
  Object.values(state).map(value =>
    createHash('sha256')
      .update(JSON.stringify(value) ?? '')
      .digest('base64url')
      .slice(0, PART_CHARS),
  );

/** The tag of a state, quoted. */
export function entityTag(state: TaggedState): string {
  return `"${partsOf(state).join('.')}"`;
}

/** The header of an answer that shows a state. */
export const tagHeader = (state: TaggedState): [string, string] => ['ETag', entityTag(state)];

/** Whether `If-None-Match` says that the client has what this tag names. */
export function hasTag(headers: Request['headers'], tag: string): boolean {
  const given = headers['if-none-match'];
  if (given === undefined) return false;
  const known: readonly string[] = given.match(/"[^"]*"/g) ?? [];
  return given.trim() === '*' || known.includes(tag);
}

/**
 * What a client gets that has the answer already (RFC 9110 section 13.1.2): 304 when `If-None-Match` is `*` or lists the `ETag` of the
 * answer, compared weakly; otherwise the answer.
 */
export function notModified({ headers, method }: Request, reply: Reply): Reply {
  if (method !== 'GET' && method !== 'HEAD') return reply;
  if (reply.status !== 200 && reply.status !== 206) return reply;
  const tag = reply.headers.find(([name]) => name === 'ETag')?.[1].replace(/^W\//, '');
  if (tag === undefined || !hasTag(headers, tag)) return reply;
  return { status: 304, headers: reply.headers.filter(([name]) => !ABOUT_THE_BODY.test(name)), body: '' };
}

/** What a 304 does not repeat: the client has it with the body. */
const ABOUT_THE_BODY = /^content-(?!security-policy|location)/i;

/**
 * Refuses a change of something that is no longer as the client read it. Without `If-Match` every change is let through.
 *
 * @param what is changed: `the settings of trigger "greet"`
 * @param state as it is now, read under the lock of the change
 * @throws ServiceError `precondition_failed` that names what was changed; `malformed_request` when the header holds no tags
 */
export function checkIfMatch({ headers }: Request, what: string, state: TaggedState): void {
  const given = headers['if-match'];
  if (given === undefined || given.trim() === '*') return;
  const tags = [...given.matchAll(/(W\/)?"([^"]*)"/g)];
  if (tags.length === 0)
    throw new ServiceError('malformed_request', 'If-Match must hold the ETag of what was read, or *');
  const now = partsOf(state);
  // A weak tag never matches here (RFC 9110 section 13.1.1).
  if (tags.some(([, weak, tag]) => weak === undefined && tag === now.join('.'))) return;
  const read = tags[0]?.[2]?.split('.') ?? [];
  const names = Object.keys(state);
  const isOurs = read.length === names.length;
  const changed = isOurs ? names.filter((_, k) => read[k] !== now[k]) : [];
  throw new ServiceError(
    'precondition_failed',
    isOurs
      ? `${what} changed since it was read: ${changed.join(', ')}; read it again and repeat the change`
      : `If-Match does not hold the ETag of ${what}; read it again and send its ETag`,
    { headers: [['ETag', entityTag(state)]], extra: { changed } },
  );
}
