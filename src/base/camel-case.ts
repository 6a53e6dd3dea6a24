/** Names that were asked for before: columns and fields are named again and again. */
const known = new Map<string, string>();

/** A name of the database or of the API as the code has it: `created_at` is `createdAt`. */
export function toCamelCase(name: string): string {
  let found = known.get(name);
  if (found === undefined) {
    found = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    known.set(name, found);
  }
  return found;
}
