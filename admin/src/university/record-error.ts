import type { TFunction } from 'i18next';
import type { Schemas } from '../api/client.ts';
import type { RecordFile } from './record-file.ts';

/** What is wrong, without the place, which has columns of its own. */
export const wrongOf = ({ message }: Schemas['RecordError']): string => message.replace(/^\/\d+(\/\S+)? /, '');

/** Where a record stands in its file, as the program that wrote the file counts. */
export const placeIn = (file: RecordFile, index: number, t: TFunction): string =>
  file.format === 'csv'
    ? t('university.line', { line: file.rows[index + 1]?.line ?? index + 2 })
    : t('university.entry', { entry: index + 1 });
