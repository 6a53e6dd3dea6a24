import { OperatorError, ServiceError } from '../base/errors.ts';
import type { BuiltModule } from '../projects/build-project.ts';
import { type GalleryPlugin, listGallery } from '../projects/gallery.ts';
import { readProject } from '../projects/project.ts';

export type Gallery = {
  list(): readonly GalleryPlugin[];
  build(id: string): Promise<BuiltModule>;
  close(): Promise<void>;
};

/** The plugins that come with the service. What builds them is loaded when one is asked for. */
export function makeGallery(): Gallery {
  let building: Promise<typeof import('../projects/build-project.ts')> | null = null;
  return {
    list: listGallery,
    async build(id) {
      const folder = listGallery().find(p => p.id === id)?.folder;
      if (folder === undefined) throw new Error(`bug: the gallery has no plugin ${id}`);
      building ??= import('../projects/build-project.ts');
      const { buildModule } = await building;
      try {
        return await buildModule(readProject(folder));
      } catch (error) {
        if (!(error instanceof OperatorError)) throw error;
        throw new ServiceError('unavailable', `the plugin cannot be built here: ${error.message}`, { cause: error });
      }
    },
    async close() {
      await (await building)?.endBuilds();
    },
  };
}
