/** Text as PostgreSQL can hold it: a NUL becomes `\x00`, half of a surrogate pair U+FFFD. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\\x00');
