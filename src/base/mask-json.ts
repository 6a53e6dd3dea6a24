/** Strings with their escapes, marks, other values, and spaces of a JSON text (RFC 8259). */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+|\s+/gs;

/** Where a value stands: a member of an object, or an element of a list that has the name of the list. */
export type JsonPlace = { isList: boolean; name: string; index: number; isHidden: boolean };

export type JsonMask = {
  /** Whether the value at the innermost place is hidden, with all that is in it. Places begin with the outermost. */
  hides(places: readonly JsonPlace[]): boolean;
  /** What stands for a hidden value, as JSON: a string for a string, and whatever a reader expects for another one. */
  hidden(json: string, places: readonly JsonPlace[]): string;
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
  const value = (token: string): string => {
    const place = places.at(-1);
    if (place !== undefined && (place.isHidden || mask.hides(places))) return mask.hidden(token, places);
    if (token[0] === '"') return string(token, mask.text);
    return /^[-\d]/.test(token) ? mask.number(token) : token;
  };
  const open = (isList: boolean): void => {
    const outer = places.at(-1);
    const isHidden = outer !== undefined && (outer.isHidden || mask.hides(places));
    places.push({ isList, name: outer?.name ?? '', index: 0, isHidden });
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
