import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { messageOf, ServiceError } from '../../base/errors.ts';

/** What is done with the file of a form. A form that turns out wrong behind its file has it discarded. */
export type FileReceiver<T> = { receive(file: Readable): Promise<T>; discard(received: T): Promise<void> };

function parserFor(headers: Readonly<Record<string, string>>): busboy.Busboy {
  try {
    return busboy({ headers, limits: { files: 4, fields: 20, fieldSize: 4096, parts: 24 } });
  } catch (error) {
    throw new ServiceError('malformed_request', `the multipart form cannot be read: ${messageOf(error)}`);
  }
}

/**
 * Streams the files of a multipart form to their receivers.
 *
 * @param headers of the request
 * @param body the request body
 * @param fields a receiver for each field that may hold a file; the first one must
 * @returns what the receivers made of the files, by field, once the whole form has been read
 * @throws ServiceError 415 for another media type, 400 for a broken form, 422 when a field is missing, unknown or stands twice
 */
export async function receiveFiles<T>(
  headers: Readonly<Record<string, string>>,
  body: Readable,
  fields: Readonly<Record<string, FileReceiver<T>>>,
): Promise<Map<string, T>> {
  try {
    const type = headers['content-type'] ?? '';
    const [first = 'file'] = Object.keys(fields);
    if (!/^multipart\/form-data\s*;/i.test(type))
      throw new ServiceError(
        'unsupported_media_type',
        `send a multipart/form-data form with the file in field "${first}", for example: curl -F ${first}=@FILE`,
      );
    return await readForm(parserFor(headers), body, fields, first);
  } finally {
    // The rest of the body is read and dropped, so that the connection can be used again.
    body.unpipe();
    body.resume();
  }
}

const invalid = (field: string, message: string): ServiceError =>
  new ServiceError('validation_failed', message, { errors: [{ pointer: `/${field}`, message }] });

async function readForm<T>(
  form: busboy.Busboy,
  body: Readable,
  fields: Readonly<Record<string, FileReceiver<T>>>,
  first: string,
): Promise<Map<string, T>> {
  const receiving = new Map<string, Promise<T>>();
  let problem: unknown = null;
  await new Promise<void>(resolve => {
    form.on('file', (name, file) => {
      const receiver = Object.hasOwn(fields, name) ? fields[name] : undefined;
      const known = Object.keys(fields)
        .map(f => `"${f}"`)
        .join(' or ');
      if (receiver === undefined)
        problem ??= invalid(first, `the form has a file in field "${name}"; it belongs into ${known}`);
      else if (receiving.has(name)) problem ??= invalid(name, `field "${name}" stands twice`);
      if (problem !== null || receiver === undefined) return file.resume();
      const received = receiver.receive(file);
      receiving.set(name, received);
      received.catch(() => resolve());
    });
    form.on('error', error => {
      problem ??= new ServiceError('malformed_request', `the multipart form is broken: ${messageOf(error)}`);
      resolve();
    });
    body.on('error', error => {
      problem ??= error;
      form.destroy(error);
      resolve();
    });
    form.on('close', resolve);
    body.pipe(form);
  });
  const settled = await Promise.allSettled(receiving.values());
  const failed = settled.find(r => r.status === 'rejected');
  // A file's own error often only says that the form ended early.
  if (failed?.reason instanceof ServiceError) problem = failed.reason;
  else problem ??= failed?.reason ?? null;
  if (!receiving.has(first)) problem ??= invalid(first, `the form has no file in field "${first}"`);
  const names = [...receiving.keys()];
  const out = new Map<string, T>();
  for (const [k, r] of settled.entries()) if (r.status === 'fulfilled') out.set(names[k] ?? '', r.value);
  if (problem === null) return out;
  for (const [name, received] of out) await fields[name]?.discard(received);
  throw problem;
}
