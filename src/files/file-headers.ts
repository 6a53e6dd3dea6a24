import { create } from 'content-disposition';
import type { FileRecord } from './file-records.ts';

/** Types a browser shows without running anything of them. */
const SHOWN = /^(image\/(png|jpeg|gif|webp|avif|bmp)|audio\/[\w.+-]+|video\/[\w.+-]+|text\/plain)(;|$)/;

/**
 * `Content-Disposition` with the file's name (RFC 6266): in UTF-8, and in ASCII for old clients.
 */
export function dispositionOf(file: Pick<FileRecord, 'name' | 'mimeType'>): string {
  const type = SHOWN.test(file.mimeType) ? 'inline' : 'attachment';
  // Old clients differ in what a quote, a backslash and a percent sign mean there.
  const fallback = file.name.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  return create(file.name, { type, fallback });
}

/**
 * One range of bytes a client asks for (RFC 9110 section 14.1.2).
 *
 * @param header value of `Range`
 * @param size of what there is, in bytes
 * @returns null for the whole: no range, several, or one that is not understood
 */
export function rangeOf(
  header: string | undefined,
  size: number,
): { from: number; to: number } | 'unsatisfiable' | null {
  const parts = header === undefined ? null : /^bytes=(\d*)-(\d*)$/.exec(header.replaceAll(' ', ''));
  if (parts === null) return null;
  const [, first = '', last = ''] = parts;
  if (first === '' && last === '') return null;
  if (first === '') {
    const suffix = Math.min(Number(last), size);
    return suffix === 0 ? 'unsatisfiable' : { from: size - suffix, to: size - 1 };
  }
  const from = Number(first);
  if (last !== '' && Number(last) < from) return null;
  if (from >= size) return 'unsatisfiable';
  return { from, to: last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}
