import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { OperatorError } from '../base/errors.ts';
import { fieldErrorsOf } from '../base/field-errors.ts';
import { LIMITS } from '../base/limits.ts';

/** The folder of a plugin, as its author has it. */

/** The file in the folder that says how the plugin is built. */
export const PROJECT_FILE = 'plugin-host.json';

/** Languages there is a kit for, by the words of `--lang`. */
export const LANGUAGES = { ts: 'TypeScript', go: 'Go', rust: 'Rust', c: 'C', as: 'AssemblyScript' } as const;
export type Language = keyof typeof LANGUAGES;

export const isLanguage = (word: string): word is Language => Object.hasOwn(LANGUAGES, word);

const devUser = z.strictObject({
  name: z.string().max(300).describe('Display name').optional(),
  external_id: z.string().min(1).max(LIMITS.graphIdCharsMax).describe('Id in the university system').optional(),
  roles: z.array(z.string().min(1)).describe('What has_role and user.roles of a policy see').default([]),
  groups: z.array(z.string().min(1)).describe('Study groups the user is a member of: user.groups').default([]),
  relationships: z
    .array(z.string().regex(/^\w+:[^#]+#\w+$/, 'must be written like faculty:physics#dean'))
    .describe('What else the graph knows of the user, like faculty:physics#dean or plugin_role:hello/editor#member')
    .default([]),
  locale: z.enum(['ru', 'en']).describe('Language of the user; en without it').optional(),
  primary_channel: z.enum(['TELEGRAM', 'VK']).describe('Main messenger').optional(),
  nationality_type: z.enum(['domestic', 'foreign']).describe('Whether the user comes from abroad').optional(),
  funding_type: z.enum(['budget', 'contract']).describe('Who pays for the studies').optional(),
  education_form: z.enum(['full_time', 'part_time', 'remote']).describe('How the user studies').optional(),
});
/** A user of `plugin dev`, as a policy sees it. */
export type DevUser = z.infer<typeof devUser>;

/** What `plugin-host.json` holds. */
export const projectFile = z.strictObject({
  $schema: z.string().describe('Where an editor finds what this file may hold').optional(),
  lang: z.enum(['ts', 'go', 'rust', 'c', 'as']).describe('Language of the plugin'),
  entry: z.string().min(1).describe('The entry file, below this folder'),
  frontend: z.string().min(1).describe('Folder with index.html, delivered with the plugin').optional(),
  dev: z
    .strictObject({
      config: z.record(z.string(), z.unknown()).describe('The configuration of the plugin in plugin dev').optional(),
      users: z
        .record(z.string().regex(/^[1-9]\d{0,3}$/, 'must be the number of a user, as in user:7'), devUser)
        .describe('Users of plugin dev, by the number of X-Dev-Principal: user:7')
        .optional(),
    })
    .describe('What plugin dev does for this plugin')
    .optional(),
});

/** A plugin's folder and how it is built. */
export type Project = {
  root: string;
  language: Language;
  /** Path of the entry file. */
  entry: string;
  /** Folder of the frontend; null for none. */
  frontend: string | null;
  devConfig: Record<string, unknown>;
  devUsers: ReadonlyMap<number, DevUser>;
};

/**
 * @param folder the folder of the plugin
 * @throws OperatorError that says what is wrong with its `plugin-host.json`
 */
export function readProject(folder: string): Project {
  const root = path.resolve(folder);
  const file = path.join(root, PROJECT_FILE);
  let text: string;
  try {
    text = fs.readFileSync(file, 'utf8');
  } catch {
    throw new OperatorError(
      `${root} is not the folder of a plugin: it has no ${PROJECT_FILE}; make one with plugin-host plugin new NAME, or name the folder`,
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new OperatorError(`${file} is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  const read = projectFile.safeParse(value);
  if (!read.success) {
    const lines = fieldErrorsOf(read.error).map(e => `${e.pointer || '/'}: ${e.message}`);
    throw new OperatorError(`${file}: ${lines.join('; ')}`);
  }
  const { dev, entry, frontend, lang } = read.data;
  const project: Project = {
    root,
    language: lang,
    entry: path.join(root, entry),
    frontend: frontend === undefined ? null : path.join(root, frontend),
    devConfig: dev?.config ?? {},
    devUsers: new Map(Object.entries(dev?.users ?? {}).map(([id, user]) => [Number(id), user])),
  };
  if (!fs.existsSync(project.entry)) throw new OperatorError(`${file}: /entry: there is no file ${project.entry}`);
  return project;
}
