import { makeSemaphore } from '../../base/semaphore.ts';
import { NO_STORE } from '../../http/message.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { noParameters } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';

export type SupportBundleParts = {
  /** Packs the bundle. @returns the archive with its name */
  pack(): Promise<{ name: string; archive: Buffer }>;
};

/** What others need to help (docs/operating.md "Logs"). */
export const support = resource('Support bundle', 'What others need to help, without secrets.', {
  bundle: {
    method: 'GET',
    path: '/api/admin/support-bundle',
    guard: 'admin',
    key: ['operate'],
    summary: 'Download a support bundle',
    description:
      'Configuration without secrets, releases, queues, hosts, suspensions, the last failures. The command plugin-host support-bundle also adds what doctor finds, metrics and the journal.',
    query: noParameters,
    replies: { 200: { media: 'application/gzip', description: 'An archive (tar, gzip)' } },
  },
});

/** Others wait: each reads tables and runs a program. */
const packing = makeSemaphore(1);

const bundle: Handle<typeof support.bundle, SupportBundleParts> = async ({ pack }) => {
  const { archive, name } = await packing(pack);
  return {
    status: 200,
    headers: [
      ['Content-Type', 'application/gzip'],
      ['Content-Disposition', `attachment; filename="${name}"`],
      ['X-Content-Type-Options', 'nosniff'],
      NO_STORE,
    ],
    body: archive,
  };
};

export const supportBundleRoutes = (parts: SupportBundleParts): Route[] => serve(support, parts, { bundle });
