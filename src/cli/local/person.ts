import fs from 'node:fs';
import fsp from 'node:fs/promises';
import path from 'node:path';
import { erasePerson, exportPerson, findPerson, findPersonOfUser, type Person } from '../../app/person-data.ts';
import { personFiles, storageOf } from '../../app/person-files.ts';
import { accessDenied } from '../../base/access-denied.ts';
import { messageOf, OperatorError, ServiceError } from '../../base/errors.ts';
import { packFolder } from '../../base/pack-folder.ts';
import { readPrincipal } from '../../base/principal.ts';
import type { Config } from '../../config/load.ts';
import type { Database } from '../../db/database.ts';
import type { FileReader } from '../../files/file-storage.ts';
import { jsonText } from '../print/json-text.ts';
import { actor, CommandError, withCurrentDatabase } from './admin-commands.ts';
import { assertNewPlace } from './assert-new-place.ts';

/** How much of a file is in memory at a time. */
const CHUNK_BYTES = 1024 * 1024;

/** @throws CommandError when the service knows no such person */
async function load(db: Database, id: string): Promise<Person> {
  const user = readPrincipal(id);
  const person = user?.kind === 'user' ? await findPersonOfUser(db, user.userId) : await findPerson(db, id);
  if (person !== undefined) return person;
  const meant = /^\d{1,15}$/.test(id) ? await findPersonOfUser(db, Number(id)) : undefined;
  const hint = meant === undefined ? 'give an external id, or user:ID' : `for ${meant.label} say user:${id}`;
  throw new CommandError(`the service knows no person ${JSON.stringify(id)}: ${hint}`);
}

async function writeFile(reader: FileReader, size: number, file: string): Promise<void> {
  const to = await fsp.open(file, 'wx', 0o600);
  try {
    for (let at = 0; at < size; at += CHUNK_BYTES)
      await to.write(await reader.read(at, Math.min(CHUNK_BYTES, size - at)));
  } finally {
    await to.close();
  }
}

/** Bytes of the person's files, each below its id: two may have the same name. */
async function writeFiles(config: Config, db: Database, person: Person, directory: string): Promise<number> {
  const files = await personFiles(db, person);
  const { close, storages } = await storageOf(config, db);
  try {
    for (const file of files) {
      const reader = storages.find(s => s.kind === file.store)?.openReader(file);
      if (reader === undefined) throw new Error(`file ${file.id} lies in ${file.store}, which is not configured here`);
      try {
        const at = path.join(directory, 'files', file.id);
        fs.mkdirSync(at, { recursive: true });
        await writeFile(reader, file.size, path.join(at, path.basename(file.name) || 'file'));
      } finally {
        await reader.close();
      }
    }
  } finally {
    close();
  }
  return files.length;
}

/**
 * `person export`: everything the service holds of a person, as an archive with `person.json` and the person's files.
 *
 * @param id an external id, or `user:` and the id of a user
 * @param file where the archive is written; it must not be there yet
 * @returns what to print
 * @throws CommandError in words for the operator
 */
export async function personExport(
  config: Config,
  id: string,
  file: string,
  json: boolean,
  progress: (text: string) => void,
): Promise<string> {
  assertNewPlace(file, 'file');
  // Where the archive comes there is room for it; a temporary directory may be in memory.
  const scratch = fs.mkdtempSync(`${path.resolve(file)}.part-`);
  try {
    return await withCurrentDatabase(config, progress, async db => {
      const person = await load(db, id);
      const held = await exportPerson(db, person);
      const count = await writeFiles(config, db, person, scratch);
      fs.writeFileSync(path.join(scratch, 'person.json'), `${JSON.stringify(held, null, 2)}\n`);
      await packFolder(file, scratch, ['.']);
      if (json) return jsonText({ file, files: count, plugins: held.plugins });
      return `${file}: everything the service holds of ${person.label}, with ${count} files; plugins may hold more: ${held.plugins.join(', ') || 'none has run for this person'}`;
    });
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new CommandError(`the export failed: ${accessDenied(error) ?? messageOf(error)}`, { cause: error });
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * `person erase`: removes everything the service holds of a person, in one transaction, and notes that it did. Entries of the
 * audit log stay, without name and data.
 *
 * @param id an external id, or `user:` and the id of a user
 * @param confirmed the operator has said so
 * @returns what to print
 * @throws CommandError in words for the operator; nothing is removed then
 */
export async function personErase(
  config: Config,
  id: string,
  options: { confirmed: boolean; json: boolean },
  progress: (text: string) => void,
): Promise<string> {
  return await withCurrentDatabase(config, progress, async db => {
    const person = await load(db, id);
    if (!options.confirmed)
      throw new CommandError(
        `this removes ${person.label} for good; export what must be kept with person export, then add --yes`,
      );
    try {
      const erased = await erasePerson(db, person, actor());
      if (options.json) return jsonText(erased);
      const lines = Object.entries(erased.removed).map(([what, count]) => `${what}: ${count}`);
      return [`${person.label} is erased`, ...lines, ...erased.remarks].join('\n');
    } catch (error) {
      if (error instanceof ServiceError) throw new CommandError(error.message, { cause: error });
      throw error;
    }
  });
}
