import { AddressRanges } from '../base/address-ranges.ts';
import { isPublicAddress } from '../base/ip-address.ts';
import type { NetworkRules } from '../plugins/network-rules.ts';

/** Decides where a plugin, or a part of the service, may send requests. */
export class NetworkAccess {
  readonly #hosts: ReadonlyArray<{ name: string; isSuffix: boolean; port: string | null }>;
  readonly #private: AddressRanges;

  constructor(rules: NetworkRules) {
    this.#hosts = rules.hosts.map(text => {
      const [, name = text, port] = /^(.+?)(?::(\d+))?$/.exec(text) ?? [];
      const whole = /^\[.*\]$/.test(text) ? text : name;
      return {
        name: whole.replace(/^\*/, ''),
        isSuffix: whole.startsWith('*'),
        port: whole === text ? null : (port ?? null),
      };
    });
    this.#private = new AddressRanges(rules.private);
  }

  /** Whether the administrator's list contains the host of a URL. */
  allowsHost(url: URL): boolean {
    if (this.#hosts.length === 0) return true;
    // A trailing dot names the same host.
    const host = url.hostname.replace(/\.$/, '');
    const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
    return this.#hosts.some(
      h => (h.port === null || h.port === port) && (h.isSuffix ? host.endsWith(h.name) : host === h.name),
    );
  }

  allowsAddress(address: string): boolean {
    return isPublicAddress(address) || this.#private.includes(address);
  }
}
