import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { LANGUAGES, type Language, readProject } from './project.ts';

/** The plugins that come with the service as sources, ready to be built and installed (docs/plugins.md "Gallery"). */

const FOLDER = fileURLToPath(new URL('../../examples/', import.meta.url));

export type GalleryPlugin = {
  /** Id of the plugin, and name of its folder. */
  id: string;
  name: string;
  /** What it is for, in one sentence. */
  summary: string;
  language: (typeof LANGUAGES)[Language];
  folder: string;
};

/** The heading and the first paragraph of a page. */
function aboutOf(page: string): { name: string; summary: string } {
  const [heading = '', paragraph = ''] = page.split(/\n\s*\n/);
  return { name: heading.replace(/^# /, '').trim(), summary: paragraph.replaceAll('\n', ' ').trim() };
}

function read(): GalleryPlugin[] {
  return fs
    .readdirSync(FOLDER)
    .filter(id => fs.existsSync(path.join(FOLDER, id, 'README.md')))
    .sort()
    .map(id => {
      const folder = path.join(FOLDER, id);
      const { language } = readProject(folder);
      const page = fs.readFileSync(path.join(folder, 'README.md'), 'utf8');
      return { id, folder, language: LANGUAGES[language], ...aboutOf(page) };
    });
}

let plugins: readonly GalleryPlugin[] | null = null;

/** All of them, in the order of their ids. They are files of the program, and are read once. */
export function listGallery(): readonly GalleryPlugin[] {
  plugins ??= read();
  return plugins;
}
