import { z } from 'zod';
import type { Quarantine } from '../../records/quarantine.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { noParameters } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import { suspension, suspensionJson } from './plugin-json.ts';

export type SuspensionsApiParts = { quarantine: Quarantine };

/** What is suspended because it failed again and again (docs/operating.md "Suspensions"). */
export const suspensions = resource('Suspensions', 'Plugins and triggers that are suspended now.', {
  list: {
    method: 'GET',
    path: '/api/admin/suspensions',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'List what is suspended, of all plugins',
    description: 'Suspensions for one caller are those of this host, the latest of them.',
    query: noParameters,
    replies: { 200: z.object({ items: z.array(suspension.extend({ plugin_id: z.string() })) }) },
  },
});

const list: Handle<typeof suspensions.list, SuspensionsApiParts> = ({ quarantine }) => ({
  status: 200,
  json: { items: quarantine.list(null, Date.now()).map(s => ({ plugin_id: s.pluginId, ...suspensionJson(s) })) },
});

export const suspensionRoutes = (parts: SuspensionsApiParts): Route[] => serve(suspensions, parts, { list });
