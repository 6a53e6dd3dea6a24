import { type FieldError, ServiceError } from '../base/errors.ts';
import { CONFIG_SECTIONS, configFieldsOf, databasesOf, type Manifest, permissionsOf } from './manifest.ts';
import { checkRules, type NetworkRules, NO_RULES } from './network-rules.ts';
import type { InstalledSecrets } from './registry.ts';

/**
 * Checks the administrator's config object against the manifest. A sensitive field or database that is absent keeps its
 * stored value, because stored secrets are never shown.
 */
export function checkConfig(
  manifest: Manifest,
  given: unknown,
  stored: { config: Readonly<Record<string, string>>; secrets: InstalledSecrets; network: NetworkRules },
): { config: Record<string, string>; secrets: InstalledSecrets; network: NetworkRules } {
  const errors: FieldError[] = [];
  const object = asObject(given ?? {}, '/config', errors);
  const fields = configFieldsOf(manifest);
  const names = new Set(fields.map(f => f.name));
  for (const key of Object.keys(object))
    if (!CONFIG_SECTIONS.includes(key) && !names.has(key))
      errors.push({
        pointer: `/config/${key}`,
        message: `is not a field of this plugin; it has ${[...names].join(', ') || 'none'}`,
        code: 'unknown_field',
      });
  const config: Record<string, string> = {};
  const secrets: InstalledSecrets = { fields: {}, databases: {} };
  for (const field of fields) {
    const pointer = `/config/${field.name}`;
    const raw = Object.hasOwn(object, field.name) ? object[field.name] : undefined;
    const kept = field.sensitive ? stored.secrets.fields[field.name] : stored.config[field.name];
    // Null removes a stored value; an absent field keeps it.
    const value = raw === undefined ? kept : raw === null ? undefined : raw;
    if (value === undefined || value === '') {
      if (field.required)
        errors.push({ pointer, message: `is required: ${field.description || field.name}`, code: 'missing' });
      if (value === undefined) continue;
    }
    if (typeof value !== 'string') errors.push({ pointer, message: 'must be a string', code: 'wrong_type' });
    else if (field.sensitive) secrets.fields[field.name] = value;
    else config[field.name] = value;
  }
  const network = networkOf(manifest, object.network, stored.network, errors);
  const databases = asObject(object.databases ?? {}, '/config/databases', errors);
  const wanted = databasesOf(manifest);
  for (const name of Object.keys(databases))
    if (!wanted.includes(name))
      errors.push({
        pointer: `/config/databases/${name}`,
        message: `is not a database of this plugin; it has ${wanted.join(', ') || 'none'}`,
        code: 'unknown_field',
      });
  for (const name of wanted) {
    const pointer = `/config/databases/${name}`;
    const value = Object.hasOwn(databases, name) ? databases[name] : stored.secrets.databases[name];
    if (value === undefined)
      errors.push({
        pointer,
        message: `is required: the connection string of database "${name}"`,
        code: 'missing',
      });
    else if (typeof value !== 'string') errors.push({ pointer, message: 'must be a string', code: 'wrong_type' });
    else if (connectionProblem(value) !== null)
      errors.push({ pointer, message: connectionProblem(value) ?? '', code: 'malformed' });
    else secrets.databases[name] = value;
  }
  const [first] = errors;
  if (first !== undefined) {
    const how = errors.every(e => e.code === 'missing') ? 'not complete' : 'wrong';
    throw new ServiceError('validation_failed', `the configuration is ${how}: ${first.pointer} ${first.message}`, {
      errors,
    });
  }
  return { config, secrets, network };
}

/** Parameters that make a client read files of its machine. */
const FILE_PARAMETERS = ['sslcert', 'sslkey', 'sslrootcert', 'sslcrl', 'passfile', 'service', 'servicefile'];

/** The mistake in the connection string of a plugin's database, or null. It must not name a file. */
export function connectionProblem(value: string): string | null {
  if (!/^postgres(ql)?:\/\//.test(value))
    return 'must be a connection string like postgresql://user:password@host:5432/database';
  // Some valid connection strings are not URLs: postgresql://user@/database?host=/var/run/postgresql
  for (const name of new URLSearchParams(value.replace(/^[^?]*\??/, '')).keys())
    if (FILE_PARAMETERS.includes(name.toLowerCase()))
      return `must not hold ${name}: the service reads no files of its machine for a plugin; use sslmode=require with a certificate the system trusts`;
  return null;
}

/** The rules of the section `network`, which only a plugin with that permission may have. */
function networkOf(manifest: Manifest, given: unknown, kept: NetworkRules, errors: FieldError[]): NetworkRules {
  if (!permissionsOf(manifest).includes('network')) {
    if (given !== undefined)
      errors.push({
        pointer: '/config/network',
        message: 'is not for this plugin: it does not require HTTP',
        code: 'unknown_field',
      });
    return NO_RULES;
  }
  return given === undefined ? kept : checkRules(given, kept, errors);
}

function asObject(value: unknown, pointer: string, errors: FieldError[]): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  errors.push({ pointer, message: 'must be an object', code: 'wrong_type' });
  return {};
}
