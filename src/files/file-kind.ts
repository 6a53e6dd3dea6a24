import { type FieldError, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';

/** What a file is to a messenger or a page (docs/files.md "FileRef"), with the MIME types it may have. */
const MIME_TYPES_OF = {
  photo: /^image\//,
  document: /^/,
  audio: /^(audio\/|application\/ogg$)/,
  video: /^(video\/|application\/ogg$)/,
  voice: /^(audio\/|application\/ogg$)/,
  sticker: /^(image\/(webp|png|gif)|video\/webm|application\/(x-tgsticker|json))$/,
} as const;

export type FileType = keyof typeof MIME_TYPES_OF;

export const FILE_TYPES = ['photo', 'document', 'audio', 'video', 'voice', 'sticker'] as const satisfies FileType[];

/** `type/subtype` of RFC 6838 section 4.2, and parameters of RFC 9110 section 8.3.1. */
const MIME_TYPE =
  /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}((;[a-z0-9!#$&^_.+-]+=([\w!#$%&'*+.^`|~-]+|"[\x20\x21\x23-\x5b\x5d-\x7e]*"))*)$/;

/** What is said of a file before there are bytes. */
export type FileDescription = { name: string; mimeType: string; fileType: FileType };

/** In lower case and without spaces around its parts, as it is signed, stored and compared. */
export function normalizeMimeType(text: string): string {
  const [type = '', ...parameters] = text.split(';');
  return [type.trim().toLowerCase(), ...parameters.map(normalizeParameter)].join(';');
}

function normalizeParameter(text: string): string {
  const at = text.indexOf('=');
  return at < 0 ? text.trim() : `${text.slice(0, at).trim().toLowerCase()}=${text.slice(at + 1).trim()}`;
}

/** Characters that no part of a name has on any system, or that would turn its text around. */
const UNWANTED = /[\u0000-\u001f\u007f-\u009f/\\\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

function nameProblem(name: string): string | null {
  if (name.trim() === '') return 'must not be empty';
  if (Buffer.byteLength(name) > LIMITS.fileNameBytesMax) return `must have at most ${LIMITS.fileNameBytesMax} bytes`;
  if (!name.isWellFormed()) return 'must not hold half a character';
  if (UNWANTED.test(name)) return 'must be a plain file name, without "/", "\\" and control characters';
  return name === '.' || name === '..' ? 'must be a file name, not a directory' : null;
}

/**
 * Checks what a client or a plugin says of a file; the name is shown, and never part of a path.
 *
 * @returns the description as it is stored
 * @throws ServiceError `validation_failed` naming every field that is wrong
 */
export function parseDescription(given: { name: string; mime_type: string; file_type: string }): FileDescription {
  const errors: FieldError[] = [];
  const mimeType = normalizeMimeType(given.mime_type);
  const fileType = FILE_TYPES.find(t => t === given.file_type);
  const name = nameProblem(given.name);
  if (name !== null) errors.push({ pointer: '/name', message: name, code: 'malformed' });
  if (mimeType.length > LIMITS.mimeTypeCharsMax || !MIME_TYPE.test(mimeType))
    errors.push({ pointer: '/mime_type', message: 'must be a MIME type like image/png', code: 'malformed' });
  if (fileType === undefined)
    errors.push({ pointer: '/file_type', message: `must be one of ${FILE_TYPES.join(', ')}`, code: 'not_one_of' });
  else if (errors.length === 0 && !MIME_TYPES_OF[fileType].test(mimeType.split(';')[0] ?? ''))
    errors.push({
      pointer: '/file_type',
      message: `"${fileType}" does not go with MIME type ${mimeType}; "document" goes with every one`,
      code: 'does_not_fit',
    });
  if (errors.length > 0 || fileType === undefined)
    throw new ServiceError(
      'validation_failed',
      `the file is not described well: ${errors.map(e => `${e.pointer} ${e.message}`).join('; ')}`,
      { errors },
    );
  return { name: given.name, mimeType, fileType };
}
