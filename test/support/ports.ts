import dgram from 'node:dgram';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';

/**
 * Ports for servers whose number has to be known before they listen: two processes on one port, a restart on the same one, an address
 * in a configuration. Other servers listen on port 0 and say which they got.
 *
 * They lie below the range the system takes ports of outgoing connections from, so that none of those has one in between. The test
 * holds the UDP port of the same number until it ends: other tests see that, and nothing is left behind when the test is killed.
 */
const FIRST = 10_000;
const EPHEMERAL = 32_768;

function firstEphemeral(): number {
  try {
    const text = fs.readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'latin1');
    return Number(text.trim().split(/\s+/)[0]);
  } catch {
    return EPHEMERAL;
  }
}

/** Whether nothing listens there yet: a server that no test has started. */
async function isFree(port: number): Promise<boolean> {
  const server = net.createServer();
  try {
    server.listen(port, '0.0.0.0');
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

/** Takes a port of 127.0.0.1 until this process ends. @throws Error when a thousand tries find none */
export async function takePort(): Promise<number> {
  const span = Math.max(1000, firstEphemeral() - FIRST);
  for (let k = 0; k < 1000; k++) {
    const port = FIRST + Math.floor(Math.random() * span);
    const holder = dgram.createSocket('udp4');
    try {
      holder.bind({ port, address: '127.0.0.1', exclusive: true });
      await once(holder, 'listening');
      if (await isFree(port)) {
        holder.unref();
        return port;
      }
    } catch {
      // Another test has it.
    }
    holder.close();
  }
  throw new Error('no free port was found');
}
