import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { messageOf, ServiceError } from '../errors.ts';

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
 * Streams the one file of a multipart form to a receiver.
 *
 * @param headers of the request
 * @param body the request body
 * @param field name of the form field that holds the file
 * @returns what the receiver made of the file, once the whole form has been read
 * @throws ServiceError 415 for another media type, 400 for a broken form, 422 when the field is missing or stands twice
 */
export async function receiveFile<T>(
  headers: Readonly<Record<string, string>>,
  body: Readable,
  field: string,
  receiver: FileReceiver<T>,
): Promise<T> {
  try {
    const type = headers['content-type'] ?? '';
    if (!/^multipart\/form-data\s*;/i.test(type))
      throw new ServiceError(
        'unsupported_media_type',
        `send a multipart/form-data form with the file in field "${field}", for example: curl -F ${field}=@plugin.wasm`,
      );
    return await readForm(parserFor(headers), body, field, receiver);
  } finally {
    // What is left of the body is read and dropped, so that the connection can be used again.
    body.unpipe();
    body.resume();
  }
}

async function readForm<T>(form: busboy.Busboy, body: Readable, field: string, receiver: FileReceiver<T>): Promise<T> {
  const invalid = (message: string): ServiceError =>
    new ServiceError('validation_failed', message, { errors: [{ pointer: `/${field}`, message }] });
  let receiving: Promise<T> | null = null;
  let problem: unknown = null;
  await new Promise<void>(resolve => {
    form.on('file', (name, file) => {
      if (name !== field) problem ??= invalid(`the form has a file in field "${name}"; it belongs into "${field}"`);
      else if (receiving !== null) problem ??= invalid(`field "${field}" stands twice`);
      if (problem !== null) return file.resume();
      receiving = receiver.receive(file);
      receiving.catch(() => resolve());
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
  if (receiving === null) throw problem ?? invalid(`the form has no file in field "${field}"`);
  const received: T = await (receiving as Promise<T>).catch((error: unknown) => {
    // The file's own error only says that the form ended early.
    throw error instanceof ServiceError ? error : (problem ?? error);
  });
  if (problem === null) return received;
  await receiver.discard(received);
  throw problem;
}
