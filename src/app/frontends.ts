import { frontendRoutes } from '../api/plugins/frontends-api.ts';
import { Frontends } from '../frontends/frontends.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import type { Identity } from './identity.ts';
import type { Plugins } from './plugins.ts';

export type FrontendsParts = Pick<Plugins, 'registry' | 'origins'> &
  Pick<Identity, 'guards' | 'hasLogin' | 'principals'> & {
    /** Origins other than this host that browsers upload files to and download files from. */
    fileOrigins: readonly string[];
  };

/** Serves the frontends of plugins. */
export function composeFrontends({ publicBase, storage }: Core, parts: FrontendsParts): Feature {
  const { fileOrigins, guards, hasLogin, origins, principals, registry } = parts;
  const frontends = new Frontends();
  const routes = frontendRoutes({
    registry,
    frontends,
    hasLogin,
    pluginOrigins: origins,
    pathOf: (key, sha256) => storage.bringFrontend(key, sha256),
    async hasSession(request) {
      const principal = await principals.find(request.headers, Date.now());
      return principal?.kind === 'user' || (await guards.adminSession(request)) !== null;
    },
    origins: () => [...fileOrigins, new URL(publicBase()).origin],
  });
  return { routes, close: () => frontends.close() };
}
