const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g;

/**
 * A text with the words of others in it (what a plugin has logged, the name of a person), as a terminal may get it: control
 * characters are written out as in JSON. A terminal would move its cursor, hide lines, or fill the clipboard by them.
 */
export const forTerminal = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(CONTROL, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Writes a text; what reads from a pipe or a file gets it as it is. */
export function writeText(stream: NodeJS.WriteStream, text: string): void {
  stream.write(stream.isTTY === true ? forTerminal(text) : text);
}

export const writeLine = (stream: NodeJS.WriteStream, text: string): void => writeText(stream, `${text}\n`);
