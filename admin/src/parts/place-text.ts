/** A place of the input as people read it, counted from one: `/hosts/0/name` is hosts › 1 › name. */
export const placeText = (pointer: string): string =>
  pointer
    .replace(/^(query|path):/, '')
    .split('/')
    .filter(part => part !== '')
    .map(part => (/^\d+$/.test(part) ? String(Number(part) + 1) : part.replaceAll('~1', '/').replaceAll('~0', '~')))
    .join(' › ');
