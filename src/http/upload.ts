import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { ServiceError } from '../errors.ts';

/**
 * Streams the one file of a multipart form to a receiver.
 *
 * @param headers of the request
 * @param body the request body
 * @param field name of the form field that holds the file
 * @param receive consumes the file; its result is returned
 * @throws ServiceError 415 for another media type, 422 when the field is missing or stands twice
 */
export function receiveFile<T>(
  headers: Readonly<Record<string, string>>,
  body: Readable,
  field: string,
  receive: (file: Readable) => Promise<T>,
): Promise<T> {
  const type = headers['content-type'] ?? '';
  if (!/^multipart\/form-data\s*;/i.test(type)) {
    body.resume();
    throw new ServiceError(
      'unsupported_media_type',
      `send a multipart/form-data form with the file in field "${field}", for example: curl -F ${field}=@plugin.wasm`,
    );
  }
  return new Promise((resolve, reject) => {
    let received: Promise<T> | null = null;
    const invalid = (message: string): ServiceError =>
      new ServiceError('validation_failed', message, { errors: [{ pointer: `/${field}`, message }] });
    let problem: ServiceError | null = null;
    let form: busboy.Busboy;
    try {
      form = busboy({ headers, limits: { files: 4, fields: 20, fieldSize: 4096, parts: 24 } });
    } catch (error) {
      body.resume();
      return reject(
        new ServiceError(
          'malformed_request',
          `the multipart form cannot be read: ${error instanceof Error ? error.message : 'unknown'}`,
        ),
      );
    }
    const stop = (error: unknown): void => {
      body.unpipe(form);
      body.resume();
      reject(error);
    };
    form.on('file', (name, file) => {
      if (name !== field)
        problem = invalid(`the form has a file in field "${name}"; the module belongs into "${field}"`);
      else if (received !== null) problem = invalid(`field "${field}" stands twice`);
      if (problem !== null) return file.resume();
      received = receive(file);
      received.catch(stop);
    });
    form.on('error', error =>
      stop(
        new ServiceError(
          'malformed_request',
          `the multipart form is broken: ${error instanceof Error ? error.message : 'unknown'}`,
        ),
      ),
    );
    body.on('error', error => {
      form.destroy(error);
      reject(error);
    });
    form.on('close', () => {
      if (problem !== null) return reject(problem);
      if (received === null) return reject(invalid(`the form has no file in field "${field}"`));
      received.then(resolve, reject);
    });
    body.pipe(form);
  });
}
