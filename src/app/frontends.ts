import { frontendRoutes } from '../api/frontends-api.ts';
import type { Guards } from '../api/guards.ts';
import type { Route } from '../api/route.ts';
import type { PluginOrigins } from '../config/plugin-origins.ts';
import { Frontends } from '../frontends/frontends.ts';
import type { Principals } from '../identity/principals.ts';
import type { ModuleStorage } from '../plugins/module-storage.ts';
import type { PluginRegistry } from '../plugins/registry.ts';

export type FrontendsParts = {
  storage: ModuleStorage;
  registry: PluginRegistry;
  principals: Principals;
  guards: Guards;
  /** Whether users may log in with an identity provider. */
  hasLogin: boolean;
  pluginOrigins: PluginOrigins | null;
  /** Other origins pages may talk to and show things from. */
  origins(): readonly string[];
};

/** Builds what serves the frontends of plugins. */
export function composeFrontends(parts: FrontendsParts): { routes: Route[]; close(): Promise<void> } {
  const { guards, hasLogin, origins, pluginOrigins, principals, registry, storage } = parts;
  const frontends = new Frontends();
  const routes = frontendRoutes({
    registry,
    frontends,
    hasLogin,
    pluginOrigins,
    pathOf: (key, sha256) => storage.frontendPath(key, sha256),
    async hasSession(request) {
      const principal = await principals.find(request.headers, Date.now());
      return principal?.kind === 'user' || (await guards.adminSession(request)) !== null;
    },
    origins,
  });
  return { routes, close: () => frontends.close() };
}
