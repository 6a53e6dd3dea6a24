const LISTS: Readonly<Record<string, { one: string; member: string }>> = {
  triggers: { one: 'trigger', member: 'name' },
  requirements: { one: 'requirement', member: 'kind' },
};

/** The text of a member of an entry in a list of a value from outside; empty when there is none. */
function textOf(value: unknown, list: string, index: string, member: string): string {
  const text: unknown = Object(Object(Object(value)[list])[index])[member];
  return typeof text === 'string' ? text : '';
}

/**
 * Names a place in a manifest as its author does, who has written no JSON: `trigger "slots", path`.
 *
 * @param pointer JSON pointer (RFC 6901)
 * @param manifest as JSON; what cannot be read is named by the pointer
 */
export function manifestPlace(pointer: string, manifest: string): string {
  const [, list = '', index = '', rest = ''] = /^\/(triggers|requirements)\/(\d+)\/?(.*)$/.exec(pointer) ?? [];
  const named = LISTS[list];
  if (named !== undefined)
    try {
      const text = textOf(JSON.parse(manifest), list, index, named.member);
      if (text !== '') return `${named.one} "${text}"${rest === '' ? '' : `, ${rest.replaceAll('/', ' ')}`}`;
    } catch {}
  return `manifest ${pointer || '/'}`;
}
