import net from 'node:net';
import { z } from 'zod';
import { isAddressRange } from '../base/address-ranges.ts';
import type { FieldError } from '../base/errors.ts';

/** Where a plugin may send requests, set by the administrator (section `network` of the install config). */
export type NetworkRules = {
  /** The only hosts it may reach: `api.example.org`, `*.example.org`, either with `:port`. Empty: all public hosts. */
  hosts: string[];
  /** Ranges that are not public but allowed, like `10.1.2.0/24`. */
  private: string[];
};

export const NO_RULES: NetworkRules = { hosts: [], private: [] };

const ENTRIES_MAX = 100;
const HOST = /^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(:\d{1,5})?$/;
const BRACKETED = /^\[([0-9a-f:.]+)\](:\d{1,5})?$/;

function isHost(text: string): boolean {
  const bracketed = BRACKETED.exec(text);
  if (bracketed !== null) return net.isIPv6(bracketed[1] ?? '');
  return text.length <= 260 && HOST.test(text) && Number(/:(\d+)$/.exec(text)?.[1] ?? 1) <= 65_535;
}

const stored = z.object({ hosts: z.array(z.string()), private: z.array(z.string()) });

/** Parses rules stored in the database. */
export const parseStoredRules = (value: unknown): NetworkRules => stored.parse(value);

/**
 * Checks the section `network` of an install config.
 *
 * @param value `{hosts?, private?}`; an absent member keeps the value of `kept`
 * @param errors receives all mistakes
 */
export function checkRules(value: unknown, kept: NetworkRules, errors: FieldError[]): NetworkRules {
  const at = '/config/network';
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    errors.push({
      pointer: at,
      message: 'must be an object like {"hosts": ["api.example.org"], "private": []}',
      code: 'wrong_type',
    });
    return kept;
  }
  const given = new Map<string, unknown>(Object.entries(value));
  for (const key of given.keys())
    if (key !== 'hosts' && key !== 'private')
      errors.push({
        pointer: `${at}/${key}`,
        message: 'is not a known field; the fields are hosts and private',
        code: 'unknown_field',
      });
  const list = (name: 'hosts' | 'private', isGood: (text: string) => boolean, right: string): string[] => {
    const entries = given.get(name);
    if (entries === undefined) return kept[name];
    if (!Array.isArray(entries) || entries.length > ENTRIES_MAX) {
      errors.push({
        pointer: `${at}/${name}`,
        message: `must be a list of at most ${ENTRIES_MAX} entries`,
        ...(Array.isArray(entries) ? { code: 'list_too_long', limit: ENTRIES_MAX } : { code: 'wrong_type' }),
      });
      return kept[name];
    }
    return entries.map((entry: unknown, k) => {
      const text = typeof entry === 'string' ? entry.toLowerCase() : '';
      if (!isGood(text)) errors.push({ pointer: `${at}/${name}/${k}`, message: `must be ${right}`, code: 'malformed' });
      return text;
    });
  };
  return {
    hosts: list(
      'hosts',
      isHost,
      'a host like api.example.org, *.example.org or api.example.org:8443, without scheme and path',
    ),
    private: list('private', isAddressRange, 'an address or a range like 10.1.2.0/24'),
  };
}
