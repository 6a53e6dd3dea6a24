/** Strings with their escapes, marks, other values, and spaces of a JSON text (RFC 8259). */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+|\s+/gs;

/** Where a value stands: a member of an object, or an element of a list that has the name of the list. */
export type JsonPlace = {
  isList: boolean;
  name: string;
  index: number;
  /** The name for which all that is in it is hidden; null when it is not. */
  hiddenBy: string | null;
};

export type JsonMask = {
  /** The name for which the value at the innermost place is hidden, with all that is in it; null for none. Places begin with the outermost. */
  hiddenBy(places: readonly JsonPlace[]): string | null;
  /** What stands for a value that is hidden for a name, as JSON: a string for a string, and whatever a reader expects for another one. */
  hidden(json: string, name: string): string;
  /** What stands for a string that is not hidden. */
  text(value: string): string;
  /** What stands for the name of a member. */
  name(value: string): string;
  /** What stands for a number that is not hidden, as JSON. */
  number(json: string): string;
};

export function isJson(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Hides values of a JSON text. All else stays as it is written: digits that no number holds, spaces, members of the same
 * name.
 *
 * @param json a text that {@link isJson}
 */
export function maskJson(json: string, mask: JsonMask): string {
  const places: JsonPlace[] = [];
  let isName = false;
  let masked = '';
  const string = (token: string, change: (text: string) => string): string => {
    const text: string = JSON.parse(token);
    const after = change(text);
    return after === text ? token : JSON.stringify(after);
  };
  const hiddenHere = (): string | null => {
    const place = places.at(-1);
    return place === undefined ? null : (place.hiddenBy ?? mask.hiddenBy(places));
  };
  const value = (token: string): string => {
    const hiddenBy = hiddenHere();
    if (hiddenBy !== null) return mask.hidden(token, hiddenBy);
    if (token[0] === '"') return string(token, mask.text);
    return /^[-\d]/.test(token) ? mask.number(token) : token;
  };
  const open = (isList: boolean): void => {
    const hiddenBy = hiddenHere();
    places.push({ isList, name: places.at(-1)?.name ?? '', index: 0, hiddenBy });
  };
  for (const [token] of json.matchAll(TOKENS)) {
    const place = places.at(-1);
    let written = token;
    if (token === '{' || token === '[') open(token === '[');
    else if (token === '}' || token === ']') places.pop();
    else if (token === ',' && place?.isList === true) place.index++;
    else if (isName && token[0] === '"' && place !== undefined) {
      place.name = JSON.parse(token);
      written = string(token, mask.name);
    } else if (token !== ',' && token !== ':' && token.trim() !== '') written = value(token);
    if (token.trim() !== '') isName = (token === '{' || token === ',') && places.at(-1)?.isList === false;
    masked += written;
  }
  return masked;
}
