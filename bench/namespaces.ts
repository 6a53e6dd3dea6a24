import { execFileSync } from 'node:child_process';
import net from 'node:net';

/**
 * A network of Linux namespaces: hosts with addresses of their own, behind one bridge, whose packets to a port can be
 * dropped without a word. Needs root, `ip` (iproute2) and `nft` (nftables).
 */
export type Network = {
  /** Address of the side where stores and clients are. */
  readonly gateway: string;
  /** Makes a host. @returns its address */
  addHost(name: string): string;
  /** The command that runs a program on a host. */
  on(name: string, command: readonly string[]): [string, string[]];
  /** Drops what goes between a host and ports of the gateway; all ports: null. Clients reach the host as before. */
  cut(name: string, ports: readonly number[] | null): void;
  /** Takes back every cut. */
  mend(): void;
  close(): void;
};

const BRIDGE = 'phbench0';
const TABLE = 'phbench';

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const tried = (command: string, ...args: string[]): void => {
  try {
    run(command, ...args);
  } catch {
    // It was not there.
  }
};

export function makeNetwork(): Network {
  if (process.getuid?.() !== 0) throw new Error('network namespaces need root');
  const gateway = '10.77.0.1';
  const hosts = new Map<string, string>();
  const remove = (): void => {
    tried('nft', 'delete', 'table', 'inet', TABLE);
    for (const name of hosts.keys()) tried('ip', 'netns', 'del', name);
    tried('ip', 'link', 'del', BRIDGE);
  };
  remove();
  run('ip', 'link', 'add', BRIDGE, 'type', 'bridge');
  run('ip', 'addr', 'add', `${gateway}/24`, 'dev', BRIDGE);
  run('ip', 'link', 'set', BRIDGE, 'up');
  const mend = (): void => {
    tried('nft', 'delete', 'table', 'inet', TABLE);
    run('nft', 'add', 'table', 'inet', TABLE);
    for (const hook of ['input', 'output'])
      run('nft', `add chain inet ${TABLE} ${hook} { type filter hook ${hook} priority 0; policy accept; }`);
  };
  mend();
  return {
    gateway,
    addHost(name) {
      const address = `10.77.0.${11 + hosts.size}`;
      tried('ip', 'netns', 'del', name);
      hosts.set(name, address);
      run('ip', 'netns', 'add', name);
      run('ip', 'link', 'add', `v${name}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
      run('ip', 'link', 'set', `v${name}`, 'master', BRIDGE, 'up');
      for (const command of [`addr add ${address}/24 dev eth0`, 'link set eth0 up', 'link set lo up'])
        run('ip', '-n', name, ...command.split(' '));
      return address;
    },
    on: (name, command) => ['ip', ['netns', 'exec', name, ...command]],
    cut(name, ports) {
      const address = hosts.get(name) ?? '';
      const set = ports === null ? null : `{ ${ports.join(', ')} }`;
      // What the host asks, and what it is answered; clients of the host stay on their ports.
      const [asks, answers] = set === null ? ['', ''] : [`tcp dport ${set}`, `tcp sport ${set}`];
      run('nft', `add rule inet ${TABLE} input ip saddr ${address} ${asks} drop`);
      run('nft', `add rule inet ${TABLE} output ip daddr ${address} ${answers} drop`);
    },
    mend,
    close: remove,
  };
}

/** Passes connections to an address of the gateway on to a server of this machine. @param to a port, or the path of a socket */
export async function passOn(address: string, to: number | string): Promise<{ port: number; close(): void }> {
  const open = new Set<net.Socket>();
  const server = net.createServer(client => {
    const upstream = typeof to === 'number' ? net.connect(to, '127.0.0.1') : net.connect(to);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>(resolve => server.listen(0, address, resolve));
  const where = server.address();
  return {
    port: typeof where === 'object' && where !== null ? where.port : 0,
    close() {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}
