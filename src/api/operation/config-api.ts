import { z } from 'zod';
import { LIMITS } from '../../base/limits.ts';
import { CONFIG_SOURCES, type Config, describeConfig, isSecret } from '../../config/load.ts';
import { type PendingConfig, pendingConfig } from '../../config/pending-config.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';

export type ConfigApiParts = { config: Config; pending(): Promise<PendingConfig | null> };

const value = z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]).nullable();
const setting = z
  .object({
    key: z.string(),
    value: value.describe('What is in force; null for a secret, which is never shown'),
    default: value.describe('What it is when nothing sets it; null for a secret'),
    is_secret: z.boolean(),
    is_set: z.boolean().describe('Whether it has a value; for a secret all that is said of it'),
    source: z
      .enum(CONFIG_SOURCES)
      .describe('Where it comes from; start: the service found it out when it started, for example a free port'),
    env: z.string().describe('Environment variable that sets it'),
    about: z.string(),
  })
  .meta({ id: 'ConfigSetting' });

/** The configuration in force (docs/configuration.md). */
export const config = resource('Configuration', 'What this service is configured with, without secrets.', {
  get: {
    method: 'GET',
    path: '/api/admin/config',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'Read the configuration in force and where each value comes from',
    description: 'It is that of the host which answers.',
    replies: {
      200: z.object({
        file: z.string().nullable().describe('Configuration file that was read'),
        settings: z.array(setting),
        pending: pendingConfig
          .meta({ id: 'PendingConfig' })
          .nullable()
          .describe('How what is written now differs; null where it is not known'),
        limits: z.record(z.string(), z.number()).describe('Fixed limits of this release, by name and unit'),
      }),
    },
  },
});

/** Addresses may hold a name and a password, which the key itself does not say. */
const withoutLogin = (text: string): string => text.replace(/\/\/[^/?#\s]+@/g, '//(hidden)@');

function shown(value: unknown): string | number | boolean | string[] | null {
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value === 'string') return withoutLogin(value);
  return Array.isArray(value) ? value.map(v => withoutLogin(String(v))) : null;
}

const get: Handle<typeof config.get, ConfigApiParts> = async ({ config, pending }) => {
  const settings = describeConfig(config).map(({ about, default: byDefault, env, key, source, value }) => ({
    key,
    value: isSecret(key) ? null : shown(value),
    default: isSecret(key) ? null : shown(byDefault),
    is_secret: isSecret(key),
    is_set: Array.isArray(value) ? value.length > 0 : value !== '',
    source,
    env,
    about,
  }));
  return { status: 200, json: { file: config.file, settings, pending: await pending(), limits: LIMITS } };
};

export const configRoutes = (parts: ConfigApiParts): Route[] => serve(config, parts, { get });
